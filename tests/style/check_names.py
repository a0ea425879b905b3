#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that a debugger can tell apart: check_names.py ROOT. A static function whose name is one bare verb stands in
one file of the plugin only; what tests need in several files comes from tests/harness."""
import collections
import os
import re
import sys

import sources
import tap

STATIC = re.compile(r"^(?:__attribute__\(\(unused\)\) )?static (?:inline )?[^;={(]*?\b(\w+)\(", re.MULTILINE)
# Functions of a table have the name of its member in every file that fills one.
MEMBERS = {"init", "fini", "supports", "prepare", "release", "run", "gemm", "NAME"}
# Bare verbs that stand in several files of the plugin until they get a better name. Nothing is added here.
KNOWN = {"allocate", "count", "fill", "take"}
TESTS_MOST = 140


def repeated(root, folder):
    """{name: files} of the static functions that stand in more than one file."""
    found = collections.defaultdict(list)
    for path in sources.files(root, [folder]):
        for name in set(STATIC.findall(sources.blank_out(sources.read(root, path)))):
            found[name].append(os.path.relpath(path, folder))
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def main():
    root = sys.argv[1]
    plugin = repeated(root, "plugin")
    bare = [f"{name}() in {', '.join(paths)}" for name, paths in plugin.items()
            if "_" not in name and name not in MEMBERS | KNOWN]
    tap.ok(not bare, "a bare verb is the name of one static function in the plugin", *bare)
    tests = repeated(root, "tests")
    print(f"# {len(plugin)} names stand in several files of the plugin, {len(tests)} in several files of tests")
    tap.ok(len(tests) <= TESTS_MOST, f"at most {TESTS_MOST} helpers stand in several files of tests",
           *(f"{name}() in {', '.join(paths)}" for name, paths in tests.items()))
    tap.done()


if __name__ == "__main__":
    main()
