#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the name of a function says where it is defined: check_names.py ROOT. A function of a room that other
files may call is named gr_ROOM_verb. base/ is a collection of tools, whose functions are named after their header,
as are the functions of OBJECTS. The share of such names is printed and may not decrease. Static functions are named
for what they do."""
import collections
import os
import re
import sys

from check_lengths import functions
import sources
import tap

LEAST_PERCENT = 97
# Objects whose names replace the name of their room.
OBJECTS = {"dgraph": ["graph"], "graph": ["csr"], "kernel": ["matrix", "mxm"], "run": ["setup"], "sample": ["sampler"],
           "spmm": ["plan"], "train": ["trainer"]}


def is_static(lines, line):
    """Whether the declaration before the body at `line` (counted from 1) is static."""
    first = line - 1
    while first > 0 and lines[first - 1].strip() and not lines[first - 1].startswith(("}", "#")):
        first -= 1
    return re.search(r"\bstatic\b", " ".join(lines[first:line])) is not None


def open_functions(text):
    """The names of the functions of a file that are not static."""
    lines = sources.blank_out(text).split("\n")
    return [name for name, line, _ in functions(text) if not is_static(lines, line)]


def objects(root, room):
    if room != "base":
        return [room, *OBJECTS.get(room, [])]
    return [name[:-2] for name in os.listdir(os.path.join(root, "plugin/base")) if name.endswith(".h")]


def has_room(name, allowed):
    return any(re.fullmatch(rf"gr_{word}s?(?:_\w+)?", name) for word in allowed)


def main():
    root = sys.argv[1]
    names = collections.defaultdict(list)
    for path in sources.files(root, ["plugin"]):
        if path.endswith(".c"):
            names[path.split("/")[1]] += open_functions(sources.read(root, path))
    named, whole = 0, sum(map(len, names.values()))
    for room, of_room in sorted(names.items()):
        count = sum(has_room(name, objects(root, room)) for name in of_room)
        named += count
        print(f"# {room}: {count} of {len(of_room)} functions have its name")
    print(f"# {named} of {whole} functions have the name of their room: {100 * named / whole:.1f} %")
    tap.ok(100 * named >= LEAST_PERCENT * whole > 0, f"at least {LEAST_PERCENT} % have the name of their room",
           f"{named} of {whole}")
    tap.ok(open_functions("static int\na(void)\n{\n}\n\nint b(void)\n{\n}\n") == ["b"] and
           has_room("gr_comm_send", ["comm"]) and not has_room("gr_common_send", ["comm"]),
           "functions that are not static are found, and names without their room")
    tap.done()


if __name__ == "__main__":
    main()
