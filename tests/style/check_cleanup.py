#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failures free what they should: check_cleanup.py ROOT. GR_TRY returns at once, so a function with a label `done`,
which has something to free, has only GR_TRY_DONE."""
import re
import sys

from check_lengths import functions
import sources
import tap


def returns_early(text):
    """(name, line) of the functions that have both."""
    code = sources.blank_out(text).split("\n")
    for name, line, length in functions(text):
        body = "\n".join(code[line - 1:line + length])
        if re.search(r"\bGR_TRY\(", body) and re.search(r"^done:", body, re.MULTILINE):
            yield name, line


def main():
    root = sys.argv[1]
    texts = {path: sources.read(root, path) for path in sources.files(root, ["plugin", "tests"])}
    tap.ok(sum(text.count("GR_TRY(") for text in texts.values()) > 500, "functions with GR_TRY are found")
    faults = [f"{path}:{line}: {name}: GR_TRY returns and frees nothing, but the function has a label done; "
              "expected GR_TRY_DONE" for path, text in texts.items() for name, line in returns_early(text)]
    tap.ok(not faults, "no function with a label done returns early", *faults)
    tap.ok([name for name, _ in returns_early("int a(void)\n{\n    GR_TRY(b());\ndone:\n    return rc;\n}\n")] == ["a"],
           "a function that returns early is found")
    tap.done()


if __name__ == "__main__":
    main()
