#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that a debugger can tell apart: check_names.py ROOT. The name of a static function stands in one file of the
plugin, and in one file of tests. What several files need comes from a header, or from tests/harness."""
import collections
import os
import re
import sys

import sources
import tap

STATIC = re.compile(r"^(?:__attribute__\(\(unused\)\) )?static (?:inline )?[^;={(]*?\b(\w+)\(", re.MULTILINE)
# Functions of a table have the name of its member in every file that fills one.
MEMBERS = {"init", "fini", "supports", "prepare", "release", "run", "gemm", "NAME"}


def repeated(root, folder):
    """{name: files} of the static functions that stand in more than one file."""
    found = collections.defaultdict(list)
    for path in sources.files(root, [folder]):
        for name in set(STATIC.findall(sources.blank_out(sources.read(root, path)))):
            found[name].append(os.path.relpath(path, folder))
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1 and name not in MEMBERS}


def main():
    for folder in ("plugin", "tests"):
        names = repeated(sys.argv[1], folder)
        tap.ok(not names, f"the name of a static function stands in one file of {folder}",
               *(f"{name}() in {', '.join(paths)}" for name, paths in names.items()))
    tap.ok(STATIC.findall("static inline int *one_two(void)\n{") == ["one_two"], "static functions are found")
    tap.done()


if __name__ == "__main__":
    main()
