#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the headers of abi/ alone and together: check_headers.py ABI-FOLDER. One source file for each header
includes it twice and makes a variable of every struct in it. Two more files include all headers, in both orders.
Every compiler and language standard of compilers.py compiles them with warnings as errors. adapters/mpi/graft_mpi.h
is compiled with the mpi.h of each installed MPI, and the headers of adapters/graphblas with GraphBLAS.h if it is
installed."""
import os
import shlex
import sys
import tempfile

import compilers
import headers
import tap

GRAPHBLAS = "graft_grb.h", "graft_grb_train.h"
MPI = {"Open MPI": "ompi-c", "MPICH": "mpich"}


def host_source(header):
    lines = [f'#include "{header.name}"', f'#include "{header.name}"', "int use_all(void);", "int use_all(void) {",
             "    unsigned long sum = 0;"]
    sized = [struct for struct, fields in header.structs.items() if fields[0].name == "size"]
    for number, struct in enumerate(sized):
        lines += [f"    {struct} s{number} = GRAFT_INIT({struct});",
                  f"    if (s{number}.size != sizeof s{number}) return 1;", f"    sum += s{number}.size;"]
    return "\n".join(lines + ["    return sum > 100000;", "}", ""])


def write_sources(found, work):
    """Write the files of hosts: one for each header, and two that include all of them."""
    texts = {header.name.replace("/", "_"): host_source(header) for header in found}
    names = [header.name for header in found]
    for order, title in ((names, "forward"), (names[::-1], "backward")):
        texts["all_" + title] = "".join(f'#include "{name}"\n' for name in order) + "extern int nothing;\n"
    paths = []
    for name, text in texts.items():
        paths.append(os.path.join(work, name + ".c"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.write(text)
    return paths


def mpi_flags(package):
    """The folder of mpi.h, as the compiler flag for system headers, or None."""
    good, said = compilers.run(["pkg-config", "--cflags", package]) if compilers.is_there("pkg-config") else (False, "")
    return [word.replace("-I", "-isystem", 1) for word in shlex.split(said)] if good else None


def cases(folder, found, work):
    """Yield what is compiled: a name, files, flags (None if a package is missing), and the name of the missing
    package."""
    files = [header.path for header in found] + write_sources(found, work)
    yield "every header, alone and together,", files, ["-I", folder], ""
    adapter = os.path.join(folder, "..", "adapters", "mpi", "graft_mpi.h")
    for name, package in MPI.items():
        flags = mpi_flags(package)
        yield (f"graft_mpi.h with {name}", [adapter], flags if flags is None else ["-I", folder, *flags],
               f"pkg-config knows no {package}")
    adapters = os.path.join(folder, "..", "adapters")
    there, _ = compilers.run(["gcc", "-E", "-x", "c", "-"], "#include <GraphBLAS.h>\n")
    yield ("graft_grb.h with GraphBLAS", [os.path.join(adapters, "graphblas", name) for name in GRAPHBLAS],
           ["-I", folder, "-I", adapters] if there else None, "there is no GraphBLAS.h")


def compile_all(command, name):
    good, said = compilers.run(command)
    return good, name, said


def check_mistakes(folder, work):
    """Make mistakes in headers that these checks must find."""
    texts = {"a header that needs another": '#include "mistake.h"\nint x = GRAFT_ERR_ARG;\n',
             "a warning of -Wpedantic": '#include "graft_base.h"\nenum { TWO, };;\n'}
    for name, text in texts.items():
        path = os.path.join(work, "mistake.h" if "another" in name else "mistake.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        good, _ = compilers.run(["gcc", "-std=c11", *compilers.STRICT, "-fsyntax-only", "-I", folder, "-x", "c", path])
        tap.ok(not good, f"{name} is noticed")


def main():
    folder = sys.argv[1]
    found = headers.read_all(folder)
    tap.ok(len(found) > 10 and any("/" in header.name for header in found), "headers and drafts are found", len(found))
    with tempfile.TemporaryDirectory(prefix="graft-headers-") as work:
        for title, files, flags, missing in cases(folder, found, work):
            for language, table in (("c", compilers.C), ("c++", compilers.CXX)):
                for compiler, standard in ((name, one) for name, standards in table.items()
                                           for one in compilers.OLDER[language] + standards):
                    name = f"{title} as {standard} by {compiler}"
                    if flags is None or not compilers.is_there(compiler):
                        tap.skip(name, missing if flags is None else f"{compiler} is not installed")
                        continue
                    options = [f"-std={standard}", *compilers.STRICT, "-fsyntax-only", *flags, "-x", language]
                    tap.ok(*compile_all([compiler, *options, *files], name))
        if compilers.is_there("gcc"):
            check_mistakes(folder, work)
    tap.done()


if __name__ == "__main__":
    main()
