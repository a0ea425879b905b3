#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no code outside parallel/ asks which strategy is used: check_strategy.py ROOT. Other rooms use neither
the fields of the structs of strategies nor their headers, except the headers with tables of functions."""
import re
import sys

import sources
import tap

HOME = "plugin/parallel/"
# Headers for other rooms: the choice of a strategy, the table of batches, and costs of vertices.
OPEN = "strategies|batches|workload"
VARIABLE = re.compile(r"\bstruct gr_(?:ranks|columns|cached(?:_layer)?|push|fetch)\s*\*\s*(?:const\s+)?(\w+)")
HEADER = re.compile(rf'#include "parallel/(?!(?:{OPEN})\.h")')


def bypasses(text):
    """Return the lines of a file that use a field or a header. A variable is known until the end of its function."""
    found, line = [], 1
    for part in re.split(r"(?<=\n})", sources.blank_out(text)):
        names = "|".join(["\\w+(?:->|\\.)cached", *VARIABLE.findall(part)])
        uses = re.compile(rf"\b(?:{names})(?:->|\.)\w+(?!\w|\()")
        found += [line + number for number, words in enumerate(part.split("\n")) if uses.search(words)]
        line += part.count("\n")
    return found + [number for number, words in enumerate(text.split("\n"), 1) if HEADER.match(words)]


def main():
    root = sys.argv[1]
    found = [f"{path}:{line}" for path in sources.files(root, ["plugin"]) if not path.startswith(HOME)
             for line in bypasses(sources.read(root, path))]
    tap.ok(not found, "no line outside parallel/ uses a field or a header of a strategy", *found)
    example = "void f(struct gr_ranks *p)\n{\n    if (p->columns != NULL && s->cached.first)\n    p->x = 1;\n}\n" \
              "void g(struct gr_run *p)\n{\n    p->x = 1;\n}\n" \
              '#include "parallel/cached.h"\n#include "parallel/batches.h"\n'
    tap.ok(bypasses(example) == [3, 4, 10], "such lines are found", bypasses(example))
    tap.done()


if __name__ == "__main__":
    main()
