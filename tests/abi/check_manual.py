#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs of abi/README.md: check_manual.py ROOT LIBGRAFT. Every block of C or C++ in that file is an
excerpt of a source file, which tests/docs checks. Source files that are whole programs are compiled here by every
compiler and language standard of compilers.py, with warnings as errors, and run with the library. The others are
built and tested with the tree."""
import os
import re
import subprocess
import sys
import tempfile

import compilers
import tap

BLOCK = re.compile(r"^```(c|cpp) excerpt=(\S+)$", re.MULTILINE)
ALONE = re.compile(r"examples/\w+\.(c|cc)")
# The output of some programs; tests/unit/examples/test_examples.py checks more of it.
PRINTS = {"examples/aggregate.c": "12 2 4 6 8 10 12 14 16 18 20 10 with 6 rows",
          "examples/means.cc": "(3, 30)\n(1, 10)\n(1, 10)\n"}
ENDS_WITHOUT_GRAPHBLAS = "examples/smallest.c"
NEEDS_A_MODEL = "examples/predict.c"  # it needs a model; unit/examples/test_examples gives it one


def check_program(root, path, library, work):
    language, table = ("c", compilers.C) if path.endswith(".c") else ("c++", compilers.CXX)
    for compiler, standard in ((name, one) for name, standards in table.items() for one in standards):
        name = f"{path} as {standard} by {compiler} compiles and runs"
        if not compilers.is_there(compiler):
            tap.skip(name, f"{compiler} is not installed")
            continue
        program = os.path.join(work, "program")
        good, said = compilers.run([compiler, f"-std={standard}", *compilers.STRICT, "-I", os.path.join(root, "abi"),
                                    "-x", language, os.path.join(root, path), "-o", program, "-ldl", "-lpthread"])
        if not good:
            tap.ok(False, name, said)
            continue
        result = subprocess.run([program, library], capture_output=True, text=True, timeout=60, check=False)
        if path == NEEDS_A_MODEL:
            tap.ok(result.returncode == 2 and "usage" in result.stderr, name, result.returncode, result.stderr)
            continue
        tap.ok(PRINTS.get(path, "") in result.stdout and result.stdout != "" and
               (result.returncode == 0 or path == ENDS_WITHOUT_GRAPHBLAS), name, result.returncode, result.stdout,
               result.stderr)


def main():
    root, library = map(os.path.abspath, sys.argv[1:3])
    with open(os.path.join(root, "abi", "README.md"), encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    files = dict.fromkeys(path for _, path in blocks)
    tap.ok({"c", "cpp"} == {language for language, _ in blocks}, "the manual shows C and C++", *blocks)
    tap.ok(PRINTS.keys() <= set(files), "whose output this test knows", *files)
    with tempfile.TemporaryDirectory(prefix="graft-manual-") as work:
        for path in files:
            if ALONE.fullmatch(path):
                check_program(root, path, library, work)
    tap.done()


if __name__ == "__main__":
    main()
