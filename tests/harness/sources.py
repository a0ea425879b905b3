# SPDX-License-Identifier: Apache-2.0
"""The C and C++ files of the tree, and their code without comments."""
import os
import re

FOLDERS = ("abi", "plugin", "adapters", "examples", "tests")
ENDINGS = (".c", ".h", ".cc", ".cpp", ".hpp")

_COMMENT_OR_LITERAL = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def files(root, folders=FOLDERS):
    """Paths, relative to the root, in order."""
    found = []
    for folder in folders:
        for path, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(path, name), root) for name in names if name.endswith(ENDINGS)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def blank_out(text, literals=True):
    """The text with every comment, and every literal if asked for, replaced by blanks: lines and columns stay."""
    def blank(match):
        if not literals and match.group()[0] in "\"'":
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())
    return _COMMENT_OR_LITERAL.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def documents(root):
    """The documents of the tree, relative to the root."""
    found = [name for name in os.listdir(root) if name.endswith(".md")]
    for folder in FOLDERS + (".github",):
        for path, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(path, name), root) for name in names if name.endswith(".md")]
    return sorted(found)
