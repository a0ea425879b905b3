#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the names of the tests to run: meson introspect --tests BUILD | choose.py SUITE [NAME...]. An empty SUITE
stands for all suites; without a NAME all tests are chosen. A NAME is a test, with or without its folders, or a
folder of tests such as unit/halo."""
import difflib
import json
import sys


def suite_of(test):
    return test["suite"][0].split(":")[-1]


def main():
    suite, *wanted = sys.argv[1:]
    tests = [test["name"] for test in json.load(sys.stdin) if suite in ("", suite_of(test))]
    chosen = [] if wanted else tests
    for name in wanted:
        found = [test for test in tests if name in (test, test.split("/")[-1]) or
                 test.startswith(name.rstrip("/") + "/")]
        if not found:
            names = tests if len(tests) <= 50 else difflib.get_close_matches(name, tests, 8, 0.3) + ["..."]
            sys.exit(f"there is no test '{name}' {'in suite ' + suite if suite else 'in any suite'}; "
                     f"there are {', '.join(names)}")
        chosen += found
    print(" ".join(chosen))


if __name__ == "__main__":
    main()
