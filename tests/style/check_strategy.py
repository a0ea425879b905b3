#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no code outside parallel/ asks which strategy is used: check_strategy.py ROOT. Lines elsewhere that
use a field of a struct of parallel/ bypass the strategy's table of functions. Their number may not grow."""
import re
import sys

import exceptions
import sources
import tap

HOME = "plugin/parallel/"
AIM = 10
VARIABLE = re.compile(r"\bstruct gr_(?:ranks|columns|cached)\s*\*\s*(?:const\s+)?(\w+)")


def bypasses(text):
    """Yield the lines of a file that use a field. A variable is known until the end of its function."""
    found, line = [], 1
    for part in re.split(r"(?<=\n})", sources.blank_out(text)):
        names = "|".join(["\\w+(?:->|\\.)cached", *VARIABLE.findall(part)])
        uses = re.compile(rf"\b(?:{names})(?:->|\.)\w+(?!\w|\()")
        found += [line + number for number, words in enumerate(part.split("\n")) if uses.search(words)]
        line += part.count("\n")
    return found


def main():
    root = sys.argv[1]
    known = int(exceptions.of_kind("bypass")[0])
    found = [f"{path}:{line}" for path in sources.files(root, ["plugin"]) if not path.startswith(HOME)
             for line in bypasses(sources.read(root, path))]
    print(f"# {len(found)} lines bypass the table of strategies; the aim is {AIM}, and {known} were known")
    tap.ok(len(found) <= known, f"at most {known} lines outside parallel/ use a field of a strategy", *found)
    example = "void f(struct gr_ranks *p)\n{\n    if (p->columns != NULL && s->cached.first)\n    p->x = 1;\n}\n" \
              "void g(struct gr_run *p)\n{\n    p->x = 1;\n}\n"
    tap.ok(bypasses(example) == [3, 4], "such lines are found", bypasses(example))
    tap.done()


if __name__ == "__main__":
    main()
