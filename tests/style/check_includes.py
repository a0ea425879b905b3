#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which file includes which: check_includes.py ROOT. The rules are the table of rooms in
plugin/ARCHITECTURE.md, and the table below."""
import os
import re
import sys

import sources
import tap

# The files of this project that a file may include. The first pattern that matches its path applies. For the plugin,
# the table of rooms in ARCHITECTURE.md says what each room may include besides abi/, base/ and itself.
ARCHITECTURE = os.path.join(os.path.dirname(__file__), "..", "..", "plugin", "ARCHITECTURE.md")
ROW = re.compile(r"^\| `(\w+)/` \|.*\|([^|]*)\|$", re.MULTILINE)


def rooms():
    """The rooms as {room: what it may include}, without entry/, which may include all."""
    with open(ARCHITECTURE, encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    names = {room for room, _ in rows} - {"entry", "base"}
    table = {}
    for room, cell in rows:
        named = set(re.findall(r"\w+", cell)) & names
        table[room] = sorted(names - named - {room} if "all but" in cell else named)
    del table["entry"]
    return table


ROOMS = rooms()
PARTS = [
    (r"abi/", ["abi"]),
    (r"plugin/entry/", ["abi", "plugin"]),
] + [(f"plugin/{room}/", ["abi", "plugin/base", f"plugin/{room}"] + [f"plugin/{other}" for other in others])
     for room, others in ROOMS.items()] + [
    (r"(adapters/(?:cxx|fortran|petsc))/", ["abi", "adapters/mpi", "itself"]),
    (r"(adapters/\w+)/", ["abi", "adapters/common", "itself"]),
    (r"(examples/[\w-]+)/", ["abi", "adapters/*.h", "examples/find_library.h", "itself"]),
    (r"examples/[\w-]+\.[ch]", ["abi", "adapters/*.h", "examples/find_library.h"]),
    (r"tests/(?:judge|oracle)/", ["abi", "examples/find_library.h", "tests/harness", "tests/judge", "tests/oracle"]),
    (r"tests/unit/examples/test_pair_loss\.c", ["abi", "tests", "examples/link-prediction"]),
    (r"tests/", ["abi", "plugin", "adapters", "tests"]),
]
# Hosts include these headers as they are installed, in one folder.
INSTALLED = ["adapters/cxx", "adapters/mpi", "adapters/petsc"]
# Headers of other projects that a file may include. Files that match no pattern may include any.
STANDARD_ONLY = {
    r"abi/graft_load\.h": {"dlfcn.h", "errno.h", "stdio.h", "string.h"},
    r"abi/": {"stddef.h", "stdint.h"},
}
FOREIGN = re.compile(r"(mpi|GraphBLAS|LAGraph|cblas|dnnl|lapacke|mkl\w*|metis|parmetis|ptscotch|jansson)\.h")
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]", re.MULTILINE)


def resolve(root, path, name):
    """The file of the tree that `name` stands for in `path`, or None."""
    for folder in (os.path.dirname(path), "abi", "plugin", "adapters", "tests", *INSTALLED):
        candidate = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def first_match(table, path):
    for pattern, value in table:
        match = re.match(pattern, path)
        if match:
            return match, value
    return None, None


def may_include(path, target):
    match, allowed = first_match(PARTS, path)
    for part in allowed or []:
        if part == "itself":
            part = match.group(1)
        if part.endswith("/*.h"):
            if target.startswith(part[:-3]) and target.endswith(".h"):
                return True
        elif target == part or target.startswith(part + "/"):
            return True
    return False


def fault(root, path, quote, name):
    """A sentence about an illegal include, or None."""
    _, standard = first_match(STANDARD_ONLY.items(), path)
    if quote == "<":
        if path.startswith("plugin/") and FOREIGN.fullmatch(name):
            return f"<{name}> is for adapters/ only"
        if standard is not None and name not in standard:
            return f"<{name}> is not one of {', '.join(sorted(standard))}"
        return None
    target = resolve(root, path, name)
    if target is None:
        return f'"{name}" is no file of this tree; headers of others stand in <>'
    if not may_include(path, target):
        return f"{path.rsplit('/', 1)[0]} must not see {target}"
    return None


def faults_of(root, path):
    text = sources.blank_out(sources.read(root, path), literals=False)
    for match in INCLUDE.finditer(text):
        found = fault(root, path, match.group(1), match.group(2))
        if found:
            yield f"{path}:{sources.line_of(text, match.start(1))}: {found}"


def wrong_pages(root):
    """The READMEs of rooms that name other rooms than the table of ARCHITECTURE.md."""
    for room, others in ROOMS.items():
        path = f"plugin/{room}/README.md"
        stated = re.search(r"^It may include .*?\.\n", sources.read(root, path), re.MULTILINE | re.DOTALL)
        named = set(re.findall(r"`(\w+)/`", stated.group() if stated else "")) - {"abi", "base"}
        if not stated or named != set(others):
            yield f"{path}: names {sorted(named)}, the table {others}"


def check_rules(root):
    """Check the rules themselves: each of these includes must be refused."""
    refused = [("plugin/base/x.c", '"', "kernel/kernel.h"), ("plugin/kernel/x.c", '"', "model/model.h"),
               ("plugin/graph/x.c", '"', "kernel/kernel.h"), ("plugin/model/x.c", '"', "io/data.h"),
               ("plugin/cover/x.c", '"', "graph/csr.h"), ("plugin/cover/x.c", '"', "kernel/kernel.h"),
               ("plugin/graph/x.c", "<", "metis.h"),
               ("plugin/graph/x.c", '"', "cover/cover.h"), ("plugin/kernel/x.c", '"', "cover/cover.h"),
               ("plugin/comm/x.c", '"', "kernel/kernel.h"), ("plugin/kernel/x.c", '"', "dgraph/graph.h"),
               ("plugin/spmm/x.c", '"', "model/model.h"), ("plugin/comm/x.c", '"', "dgraph/graph.h"),
               ("plugin/model/x.c", '"', "cover/cover.h"), ("plugin/comm/x.c", "<", "mpi.h"),
               ("plugin/kernel/x.c", '"', "graph/csr.h"), ("plugin/model/x.c", "<", "cblas.h"),
               ("plugin/base/x.c", "<", "GraphBLAS.h"), ("abi/graft_base.h", "<", "stdbool.h"),
               ("abi/graft_load.h", "<", "stdlib.h"), ("adapters/cblas/x.c", '"', "base/error.h"),
               ("examples/x.c", '"', "base/error.h"), ("plugin/entry/entry.c", '"', "tap.h"),
               ("adapters/cblas/x.c", '"', "tap.h"), ("tests/judge/x.c", '"', "base/error.h"),
               ("plugin/base/x.c", '"', "no_such_file.h")]
    passed = [f"{path} including {name}" for path, quote, name in refused if not fault(root, path, quote, name)]
    tap.ok(not passed, "the rules refuse what they should", *passed)


def main():
    root = sys.argv[1]
    paths = sources.files(root)
    for folder in sources.FOLDERS:
        found = [text for path in paths if path.startswith(folder + "/") for text in faults_of(root, path)]
        tap.ok(not found, f"{folder}: files include only what they may", *found)
    wrong = list(wrong_pages(root))
    tap.ok(not wrong, "the first page of each room names the rooms that it may include", *wrong)
    check_rules(root)
    tap.done()


if __name__ == "__main__":
    main()
