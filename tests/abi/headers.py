# SPDX-License-Identifier: Apache-2.0
"""The headers of abi/ as data: their structs, the fields, the functions, and the comment of each."""
import glob
import os
import re
from dataclasses import dataclass

import sources

STRUCT = re.compile(r"typedef struct (\w+) \{\n(.*?)\n\} (\w+);", re.DOTALL)
COMMENT_OR_DECLARATION = re.compile(r"/\*(?P<comment>.*?)\*/|(?P<declaration>[^;/]+);", re.DOTALL)
FUNCTION_POINTER = re.compile(r"(?P<type>.*?)\(\*(?P<name>\w+)\)\((?P<parameters>.*)\)", re.DOTALL)
DATA = re.compile(r"(?P<type>.*?)(?P<names>\w+(?:\[\w+\])?(?:\s*,\s*\w+(?:\[\w+\])?)*)", re.DOTALL)
PUBLIC_FUNCTION = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\nGRAFT_API (\w+) (\w+)\(", re.DOTALL)
INTERFACE_ID = re.compile(r'#define (GRAFT_\w+_ID) "([^"]*)"')


@dataclass
class Field:
    struct: str
    name: str
    type: str  # of a function: what it returns
    comment: str  # the one before it
    place: str  # FILE:LINE
    is_function: bool


@dataclass
class Header:
    path: str
    text: str
    structs: dict  # name: [Field], in order
    functions: list  # exported ones, as Field with struct ""
    ids: dict  # macro: text


def read_fields(struct, body, place):
    fields, comment = [], ""
    for match in COMMENT_OR_DECLARATION.finditer(body):
        if match["comment"] is not None:
            comment = "" if match["comment"].startswith("*<") else " ".join(re.split(r"[\s*]+", match["comment"]))
            continue
        text = " ".join(match["declaration"].split())
        where = place(match.start() + len(match.group()) - len(match.group().lstrip()))
        function = FUNCTION_POINTER.fullmatch(text)
        if function:
            fields.append(Field(struct, function["name"], function["type"].strip(), comment, where, True))
        else:
            data = DATA.fullmatch(text)
            for name in re.findall(r"\w+(?=\s*(?:\[\w+\])?\s*(?:,|$))", data["names"]):
                fields.append(Field(struct, name, data["type"].strip(), comment, where, False))
        comment = ""
    return fields


def read_header(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    structs = {}
    for match in STRUCT.finditer(text):
        def place(offset, start=match.start(2)):
            return f"{os.path.basename(path)}:{sources.line_of(text, start + offset)}"
        assert match.group(1) == match.group(3), f"{path}: struct {match.group(1)} is named {match.group(3)}"
        structs[match.group(1)] = read_fields(match.group(1), match.group(2), place)
    functions = [Field("", match.group(3), match.group(2), match.group(1),
                       f"{os.path.basename(path)}:{sources.line_of(text, match.start(2))}", True)
                 for match in PUBLIC_FUNCTION.finditer(text)]
    return Header(path, text, structs, functions, dict(INTERFACE_ID.findall(text)))


def read_all(folder):
    return [read_header(path) for path in sorted(glob.glob(os.path.join(folder, "*.h")))]
