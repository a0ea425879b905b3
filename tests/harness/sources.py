# SPDX-License-Identifier: Apache-2.0
"""Lists the C and C++ files of the tree, and reads their code without comments."""
import os
import re

FOLDERS = ("abi", "plugin", "adapters", "examples", "tests")
ENDINGS = (".c", ".h", ".cc", ".cpp", ".hpp")

_COMMENT_OR_LITERAL = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def files(root, folders=FOLDERS):
    """Paths of all files, relative to the root, in alphabetical order."""
    found = []
    for folder in folders:
        for path, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(path, name), root) for name in names if name.endswith(ENDINGS)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def blank_out(text, literals=True):
    """Replace every comment, and on request every literal, by blanks, so that line and column numbers stay the same."""
    def blank(match):
        if not literals and match.group()[0] in "\"'":
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())
    return _COMMENT_OR_LITERAL.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def documents(root):
    """The Markdown documents of the tree, relative to the root."""
    found = [name for name in os.listdir(root) if name.endswith(".md")]
    for folder in FOLDERS + (".github",):
        for path, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(path, name), root) for name in names if name.endswith(".md")]
    return sorted(found)
