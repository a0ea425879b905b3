#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks lengths: check_lengths.py ROOT. A line has at most 120 columns, a file 600 lines (in abi/ 250), and the
body of a function 100 lines. Rooms of the plugin with fewer than 500 lines or more than 3,000 are listed."""
import collections
import os
import re
import sys

import sources
import tap

MAX_COLUMNS, MAX_LINES, MAX_ABI_LINES, MAX_BODY = 120, 600, 250, 100
ROOM_LINES = range(500, 3001)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
TEXT_ENDINGS = sources.ENDINGS + (".py", ".sh", ".build", ".map")


def text_files(root):
    found = []
    for path, folders, names in os.walk(root):
        if path == root:
            folders[:] = [folder for folder in folders if folder in sources.FOLDERS]
        found += [os.path.relpath(os.path.join(path, name), root) for name in names if name.endswith(TEXT_ENDINGS)]
    return sorted(found)


def long_lines(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            yield f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"


def long_file(path, text):
    limit = MAX_ABI_LINES if path.startswith("abi/") else MAX_LINES
    lines = text.count("\n")
    return [f"{path}:{lines}: {lines} lines, at most {limit}"] if lines > limit else []


def functions(text):
    """Yield (name, first line, number of lines of the body) of every function. The body is in braces after a list of
    parameters, outside of all other braces."""
    code = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), sources.blank_out(text))
    depth, start, head = 0, 0, 0
    for match in re.finditer(r"[{};]", code):
        mark, at = match.group(), match.start()
        if mark == "{":
            if depth == 0:
                start, before = at, code[head:at]
            depth += 1
        elif mark == "}":
            depth -= 1
            name = re.search(r"(\w+)\s*\(", before) if depth == 0 else None
            if name and re.search(r"\)\s*(?:const|noexcept|override)?\s*$", before):
                yield name.group(1), sources.line_of(code, start), code.count("\n", start, at) - 1
        if depth == 0:
            head = at + 1


def long_functions(path, text):
    for name, line, lines in functions(text):
        if lines > MAX_BODY:
            yield f"{path}:{line}: {name}() has {lines} lines, at most {MAX_BODY}"


def show_odd_rooms(texts):
    rooms = collections.Counter()
    for path, text in texts.items():
        if path.startswith("plugin/") and path.count("/") > 1 and path.endswith(sources.ENDINGS):
            rooms[path.split("/")[1]] += text.count("\n")
    for room, lines in sorted(rooms.items()):
        if lines not in ROOM_LINES:
            print(f"# room {room} has {lines} lines; from {ROOM_LINES[0]} to {ROOM_LINES[-1]} feel at home")


def check_counter():
    """Check the counter of lines itself on a function of known length."""
    text = "struct s {\n int a;\n};\n#define F() {\n/* f() { */\nstatic int f(int x)\n{\n"
    text += " x = (x) ? '{' : 2;\n" * 101 + "}\nint g;\n"
    tap.ok(list(functions(text)) == [("f", 7, 101)] and len(list(long_functions("x.c", text))) == 1 and
           len(list(long_lines("x.c", "\n" + "x" * 121))) == 1 and long_file("abi/x.h", "\n" * 251),
           "what is too long is found", list(functions(text)))


def main():
    root = sys.argv[1]
    texts = {path: sources.read(root, path) for path in text_files(root)}
    lines = [fault for path, text in texts.items() for fault in long_lines(path, text)]
    tap.ok(not lines, f"lines have at most {MAX_COLUMNS} columns", *lines)
    tall = [fault for path, text in texts.items() for fault in long_file(path, text)]
    tap.ok(not tall, f"files have at most {MAX_LINES} lines, those of abi/ {MAX_ABI_LINES}", *tall)
    code = {path: text for path, text in texts.items() if path.endswith(sources.ENDINGS)}
    bodies = [fault for path, text in code.items() for fault in long_functions(path, text)]
    tap.ok(not bodies, f"functions have at most {MAX_BODY} lines", *bodies)
    tap.ok(sum(len(list(functions(text))) for text in code.values()) > 100, "functions are found at all")
    show_odd_rooms(texts)
    check_counter()
    tap.done()


if __name__ == "__main__":
    main()
