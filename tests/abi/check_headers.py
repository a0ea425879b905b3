#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header alone: check_headers.py ABI-FOLDER. Each is compiled by itself, and in a file of a host that includes it
twice and makes one of every struct in it, as C11, C17 and C++17 by gcc and clang, with warnings as errors."""
import os
import sys

import compilers
import headers
import tap


def host_source(header):
    name = os.path.basename(header.path)
    lines = [f'#include "{name}"', f'#include "{name}"', "int use_all(void);", "int use_all(void) {",
             "    unsigned long sum = 0;"]
    for number, struct in enumerate(header.structs):
        lines += [f"    {struct} s{number} = GRAFT_INIT({struct});",
                  f"    if (s{number}.size != sizeof s{number}) return 1;", f"    sum += s{number}.size;"]
    return "\n".join(lines + ["    return sum > 100000;", "}", ""])


def compile_one(compiler, standard, language, header, folder):
    command = [compiler, "-std=" + standard, *compilers.STRICT, "-fsyntax-only"]
    alone, said_alone = compilers.run([*command, "-x", language, header.path])
    used, said_used = compilers.run([*command, "-I", folder, "-x", language, "-"], host_source(header))
    return alone and used, said_alone + said_used


def main():
    folder = sys.argv[1]
    found = headers.read_all(folder)
    for language, table in (("c", compilers.C), ("c++", compilers.CXX)):
        for compiler, standards in table.items():
            for standard in standards:
                name = f"every header compiles as {standard} by {compiler}"
                if not compilers.is_there(compiler):
                    tap.skip(name, f"{compiler} is not installed")
                    continue
                faults = [said for good, said in (compile_one(compiler, standard, language, header, folder)
                                                  for header in found) if not good]
                tap.ok(len(found) > 1 and not faults, name, *faults)
    tap.done()


if __name__ == "__main__":
    main()
