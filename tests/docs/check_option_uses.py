#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each option has a value in a measurement, or in a use that a manual shows: check_option_uses.py ROOT. The
options are listed in the options.h of the rooms. A use is key=VALUE, the variable GRAFT_KEY=VALUE, or "key" as an
argument of a call. The generated table of options in a manual does not count."""
import glob
import os
import re
import sys

import tap

# A row X(TYPE(arguments), field, "key", as base/option_row.h describes it.
ROW = re.compile(r"^    X\(\w+\(.*?\), \w+, \"([\w.]+)\",", re.MULTILINE)
TABLE = re.compile(r"<!-- options: begin.*?options: end", re.DOTALL)
WHERE = ["README.md", "abi/**/*.md", "adapters/*/README.md", "examples/**/*.md", "examples/**/*.c",
         "examples/**/*.py", "examples/**/*.sh", "tests/bench/*"]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def uses(root):
    """The text of all manuals, headers, examples and measurements."""
    paths = [path for pattern in WHERE for path in glob.glob(os.path.join(root, pattern), recursive=True)]
    return "\n".join(TABLE.sub("", read(path)) for path in paths if os.path.isfile(path))


def unused(keys, text):
    return [key for key in keys if not re.search(
        rf"(?<![\w.]){re.escape(key)}=|\bGRAFT_{re.escape(key.upper().replace('.', '_'))}=|\"{re.escape(key)}\",",
        text)]


def main():
    root = os.path.abspath(sys.argv[1])
    lists = sorted(glob.glob(os.path.join(root, "plugin", "*", "options.h")))
    keys = [key for path in lists for key in ROW.findall(read(path))]
    tap.ok(len(keys) > 60 and len(set(keys)) == len(keys), "the options are found, each once", len(keys))
    tap.ok(len(keys) <= MOST, f"there are at most {MOST} options", len(keys))
    tap.ok(not unused(keys, uses(root)), "each option is in a manual, an example or a measurement",
           *unused(keys, uses(root)))
    tap.ok(unused(["lr", "no.such", "a.b"], "lr=0.1, no.such, GRAFT_A_B=1") == ["no.such"],
           "an option without a use is found")
    tap.done()


MOST = 90

if __name__ == "__main__":
    main()
