#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that large headers and structs consist of named parts: check_parts.py ROOT. A header of the plugin has at
most 35 prototypes, and a struct at most 20 fields. exceptions.txt lists known exceptions."""
import re
import sys

from check_lengths import DIRECTIVE
import exceptions
import sources
import tap

MAX_PROTOTYPES, MAX_FIELDS = 35, 20
STRUCT = re.compile(r"\b(?:struct|union)\s*(\w*)\s*\{")
NO_PROTOTYPE = re.compile(r"\btypedef\b|\bstatic\b|=|\(\s*\*")


def outside_of(code, brackets):
    """The code without the text in brackets. The closing brackets stay."""
    out, depth = [], 0
    for mark in code:
        if mark == brackets[1]:
            depth -= 1
        if depth == 0:
            out.append(mark)
        if mark == brackets[0]:
            depth += 1
    return "".join(out)


def body_at(code, start):
    """The text in the braces that begin at `start`."""
    depth = 0
    for match in re.finditer(r"[{}]", code[start:]):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return code[start + 1:start + match.start()]
    return ""


def fields(body):
    """The number of fields that a struct declares itself. A struct inside it counts as one field, and is checked
    separately."""
    declarations = outside_of(outside_of(body, "{}"), "()").split(";")
    return sum(1 + declaration.count(",") for declaration in declarations if declaration.strip())


def structs(code):
    """Yield (name, fields) of every struct."""
    return [(match.group(1), fields(body_at(code, match.end() - 1))) for match in STRUCT.finditer(code)]


def prototypes(code):
    """The number of functions that a header declares and does not define."""
    declarations = re.split(r"[;}]", outside_of(code, "{}"))
    return sum(1 for text in declarations if re.search(r"\w\s*\(", text) and not NO_PROTOTYPE.search(text))


def code_of(root, path):
    return DIRECTIVE.sub("", sources.blank_out(sources.read(root, path)))


def main():
    root = sys.argv[1]
    codes = {path: code_of(root, path) for path in sources.files(root, ["plugin"])}
    counts = {path: prototypes(code) for path, code in codes.items() if path.endswith(".h")}
    exceptions.check("header", {path: f"{path} has {count} prototypes" for path, count in counts.items()
                                if count > MAX_PROTOTYPES}, f"headers have at most {MAX_PROTOTYPES} prototypes")
    found = [(name, count, path) for path, code in codes.items() for name, count in structs(code)]
    exceptions.check("struct", {name or path: f"struct {name} in {path} has {count} fields"
                                for name, count, path in found if count > MAX_FIELDS},
                     f"structs have at most {MAX_FIELDS} fields")
    tap.ok(sum(counts.values()) > 500 and len(found) > 200, "prototypes and structs are found at all")
    example = "struct s { int a, b[2]; struct { int c; } d; int (*e)(int, int); };\nint f(int, int);\n" \
              "static inline int g(void) { return f(1, 2); }\ntypedef int h(void);\nint\nk(void);\n"
    tap.ok(structs(example) == [("s", 4), ("", 1)] and prototypes(example) == 2, "they are counted",
           structs(example), prototypes(example))
    tap.done()


if __name__ == "__main__":
    main()
