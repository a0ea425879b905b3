#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that abidiff of libabigail finds no change of abi/ that breaks hosts: check_abidiff.py ABI-FOLDER
FROZEN-FOLDER. Two libraries are compiled, one with today's headers and one with the frozen ones. Each has a variable
of every type, so that no table is hidden behind a void pointer. abidiff compares their debug information. It may
report only new types and new fields at the end of structs."""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import compilers
import contract
import headers
import tap

TOOLS = ("abidw", "abidiff")
QUIET = ["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed"]
SIZE = re.compile(r"type size changed from (\d+) to \d+ \(in bits\)")
INSERTION = re.compile(r"'.*', at offset (\d+) \(in bits\)")
# Lines of a report that do not describe a change themselves.
FRAME = re.compile(r"(Leaf changes|Changed leaf types) summary: .*|Removed/Changed/Added \w+ summary: 0 Removed, 0 .*|"
                   r"\d+ data member insertions?:|\d+ Added variables?:|\[A\] .*|'struct \w+' changed:|")
# Changes of a table of functions and of its arguments that must be reported.
BREAKS = {
    "a slot in the middle": ("graft_codec.h", "    uint32_t reserved;\n\n    /** Compute the bytes",
                             "    uint32_t reserved;\n    void (*new_one)(void *self);\n\n    /** Compute the bytes"),
    "two slots swapped": ("graft_mxm.h", ("(*matrix_bytes)", "(*run)"), None),
    "another parameter": ("graft_mxm.h", "const graft_csr *csr, int32_t trust", "const graft_csr *csr, int64_t trust"),
    "another result": ("graft_mxm.h", "int64_t (*matrix_bytes)", "int32_t (*matrix_bytes)"),
    "another type of a field": ("graft_mxm.h", "double             dropout;", "int64_t            dropout;"),
    "a slot of a module": ("graft_module.h", "    void (*fini)(void *state);\n\n    /** Return OK if the kernel",
                           "    void (*fini)(void *state, int32_t how);\n\n    /** Return OK if the kernel"),
    "a slot taken away": ("graft_codec.h", "int32_t (*decode)(", "int32_t (*undo)("),
}


def anchor(folder):
    """The source of a library with a variable of every struct and function type of the headers."""
    found, lines = headers.read_all(folder), []
    for header in found:
        lines += [f"GRAFT_API {struct} *anchor_{struct};" for struct in header.structs]
        lines += [f"GRAFT_API __typeof__(&{function.name}) anchor_{function.name};" for function in header.functions]
        lines += [f"GRAFT_API {name} anchor_{name};" for name, meaning in header.types.items()
                  if not meaning.startswith("struct ")]
    return contract.source(found, lines)


def build(folder, path):
    good, said = compilers.run(["cc", "-w", "-g", "-O0", "-shared", "-fPIC", "-I", folder, "-x", "c", "-", "-o", path],
                               anchor(folder))
    if not good:
        raise contract.Refused(said)


def breaks(report):
    """The lines of a report in leaf mode that describe more than new fields at the end of a struct."""
    size = None
    for line in map(str.strip, report.splitlines()):
        resized, inserted = SIZE.fullmatch(line), INSERTION.fullmatch(line)
        if resized:
            size = int(resized[1])
        elif inserted and size is not None and int(inserted[1]) >= size:
            continue
        elif not FRAME.fullmatch(line):
            yield line
        if line.endswith("changed:"):
            size = None


def compare(baseline, library):
    result = subprocess.run(["abidiff", "--leaf-changes-only", "--harmless", "--no-show-locs", baseline, library],
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def mutated(folder, work, name, old, new):
    """Compile the library with headers in which one text is replaced, or two are swapped."""
    copy, library = os.path.join(work, "abi"), os.path.join(work, "mutated.so")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    with open(os.path.join(copy, name), encoding="utf-8") as file:
        text = file.read()
    pairs = [(old, new)] if new else [(old[0], "(*swapped)"), (old[1], old[0]), ("(*swapped)", old[1])]
    for before, after in pairs:
        assert text.count(before) == 1, f"{name} has not '{before}' once"
        text = text.replace(before, after)
    with open(os.path.join(copy, name), "w", encoding="utf-8") as file:
        file.write(text)
    build(copy, library)
    return library


def check_itself(folder, library, work):
    today = os.path.join(work, "today.abi")
    subprocess.run(["abidw", *QUIET, "--out-file", today, library], check=True)
    status, report = compare(today, library)
    tap.ok(status == 0 and not list(breaks(report)), "of the same headers nothing is told", report)
    for title, (name, old, new) in BREAKS.items():
        status, report = compare(today, mutated(folder, work, name, old, new))
        tap.ok(status & 4 and list(breaks(report)), f"{title} is told", status, report)
    status, report = compare(today, mutated(folder, work, "graft_codec.h", "\n} graft_codec_api;",
                                            "\n    void (*new_one)(void *self);\n} graft_codec_api;"))
    tap.ok(status == 4 and "new_one" in report and not list(breaks(report)), "a slot at the tail is told as growth",
           status, report)


def main():
    folder, frozen = sys.argv[1:3]
    absent = [tool for tool in TOOLS if not compilers.is_there(tool)]
    if absent or platform.machine() != "x86_64":
        tap.skip("abidiff", f"{', '.join(absent)} is not installed: package abigail-tools" if absent else
                 f"the report is read for x86-64, this is {platform.machine()}")
        tap.done()
        return
    with tempfile.TemporaryDirectory(prefix="graft-abidiff-") as work:
        library, baseline = os.path.join(work, "libanchor.so"), os.path.join(work, "frozen", "libanchor.so")
        os.mkdir(os.path.dirname(baseline))
        build(folder, library)
        build(frozen, baseline)
        status, report = compare(baseline, library)
        told = list(breaks(report))
        tap.ok(status in (0, 4) and not told, "abidiff tells no more than growth since ABI-1", status, *told, report)
        check_itself(folder, library, work)
    tap.done()


if __name__ == "__main__":
    main()
