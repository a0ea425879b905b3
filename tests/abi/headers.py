# SPDX-License-Identifier: Apache-2.0
"""Reads the headers of abi/ as data: structs, fields, types and functions, each with its comment."""
import glob
import os
import re
from dataclasses import dataclass

import sources

STRUCT = re.compile(r"typedef struct (\w+) \{\n(.*?)\n\} (\w+);", re.DOTALL)
COMMENT_OR_DECLARATION = re.compile(r"/\*(?P<comment>.*?)\*/|(?P<declaration>[^;/]+);", re.DOTALL)
FUNCTION_POINTER = re.compile(r"(?P<type>.*?)\(\*(?P<name>\w*)\)\((?P<parameters>.*)\)", re.DOTALL)
DATA = re.compile(r"(?P<type>.*?)(?P<names>\w+(?:\[\w+\])?(?:\s*,\s*\w+(?:\[\w+\])?)*)", re.DOTALL)
PUBLIC_FUNCTION = re.compile(r"(?:/\*\*((?:(?!\*/).)*)\*/\n)?"
                             r"(?:GRAFT_API|static inline __attribute__\(\(unused\)\)) (\w+ \*?|const void \*)(\w+)"
                             r"\(([^{};]*)\)[;\n]", re.DOTALL)
TYPEDEF = re.compile(r"^typedef ((?!struct \w+ \{)[^;]*);", re.MULTILINE)
INTERFACE_ID = re.compile(r'#define (GRAFT_\w+_ID) "([^"]*)"')
THREAD_TAG = re.compile(r"\[[a-z]+-[a-z]+\]")


@dataclass
class Field:
    struct: str
    name: str
    type: str  # its type; for a function the return type
    comment: str  # the comment before its declaration
    place: str  # its position as FILE:LINE
    is_function: bool
    whole: str  # its whole type, as C writes it without a name

    def tags(self):
        """The tags in the comment about threads, ranks and release. They are part of the contract."""
        words = THREAD_TAG.findall(self.comment)
        words += re.findall(r"(?:Not c|\bC)ollective", self.comment) + re.findall(r"Since \d+\.\d+", self.comment)
        return " ".join(dict.fromkeys(word.lower().replace(" ", "-") for word in words))


@dataclass
class Header:
    path: str
    name: str  # name of the header in an #include
    text: str
    structs: dict  # structs as {name: [Field]}, with the fields in order
    types: dict  # {name: the type that it stands for}; "struct NAME" if it is opaque
    functions: list  # functions of the library, a module or the header itself, as Field with struct ""
    ids: dict  # ids of interfaces as {macro: text}

    def is_draft(self):
        return self.name.startswith("draft/")

    def is_interface(self):
        """Whether the header has a table of calls, and not only an id for data that programs exchange."""
        return bool(self.ids) and any(field.is_function for fields in self.structs.values() for field in fields)


def parameters_of(text):
    """The types of a parameter list, without the names."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return ", ".join(without_name(part) for part in parts)


def without_name(declaration):
    """The type in a declaration: 'const char *key' gives 'const char *', a function pointer gives 'int32_t (*)(void
    *, int64_t)'."""
    text = " ".join(declaration.split())
    function = FUNCTION_POINTER.fullmatch(text)
    if function:
        return f"{function['type'].strip()} (*)({parameters_of(function['parameters'])})"
    named = re.fullmatch(r"((?:const )?\w+(?: const)?[ *]+)(\w+)((?:\[\w+\])*)", text)
    return (named[1] + named[3]).strip() if named else text


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
            fields.append(Field(struct, function["name"], function["type"].strip(), comment, where, True,
                                without_name(text)))
        else:
            data = DATA.fullmatch(text)
            for name, dimension in re.findall(r"(\w+)((?:\[\w+\])?)\s*(?:,|$)", data["names"]):
                fields.append(Field(struct, name, data["type"].strip(), comment, where, False,
                                    f"{data['type'].strip()} {dimension}".strip()))
        comment = ""
    return fields


def read_types(text):
    types = {}
    for declaration in TYPEDEF.findall(sources.blank_out(text)):
        function = FUNCTION_POINTER.fullmatch(" ".join(declaration.split()))
        name = function["name"] if function else declaration.split()[-1].lstrip("*")
        types[name] = without_name(declaration) if function else declaration.rpartition(name)[0].strip()
    return types


def read_header(path, name):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    structs = {}
    for match in STRUCT.finditer(text):
        def place(offset, start=match.start(2)):
            return f"{name}:{sources.line_of(text, start + offset)}"
        assert match.group(1) == match.group(3), f"{path}: struct {match.group(1)} is named {match.group(3)}"
        structs[match.group(1)] = read_fields(match.group(1), match.group(2), place)
    functions = [Field("", match.group(3), match.group(2).strip(), match.group(1) or "",
                       f"{name}:{sources.line_of(text, match.start(2))}", True,
                       f"{match.group(2).strip()} (*)({parameters_of(match.group(4))})")
                 for match in PUBLIC_FUNCTION.finditer(text) if match.group(1) or "GRAFT_API" in match.group()]
    return Header(path, name, text, structs, read_types(text), functions, dict(INTERFACE_ID.findall(text)))


def read_all(folder):
    """Read all headers, first those of stable interfaces and then those of drafts."""
    paths = [path for part in ("*.h", "draft/*.h") for path in sorted(glob.glob(os.path.join(folder, part)))]
    return [read_header(path, os.path.relpath(path, folder)) for path in paths]
