#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write graft/_abi.py from the headers of the contract: declarations.py ABI_FOLDER OUTPUT DEPFILE COMPILER...

The headers are the only source: the C preprocessor reads them, and cffi makes a table of their structs, functions and
constants, which `import graft` loads without a parser or a compiler. It runs when the package is built."""
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile

HEADERS = ("graft.h", "draft/graft_stream.h")  # the second one includes the other drafts for hosts
SYSTEM_HEADERS = ("stddef.h", "stdint.h")  # cffi has the types in these headers


def preprocess(folder, compiler, *flags):
    """The text of all headers for hosts, preprocessed with `flags`."""
    with tempfile.TemporaryDirectory() as empty:
        for name in SYSTEM_HEADERS:
            open(os.path.join(empty, name), "w").close()
        first, last = (os.path.join(folder, name) for name in HEADERS)
        command = [*compiler, "-E", "-nostdinc", "-isystem", empty, "-I", folder, *flags, "-include", first, last]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def without_bodies(text):
    """The text without inline functions."""
    out, at = [], 0
    for match in re.finditer(r"static inline[^;{]*\{", text):
        if match.start() < at:
            continue
        out.append(text[at:match.start()])
        depth, at = 1, match.end()
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
    return "".join(out) + text[at:]


def declarations(folder, compiler):
    text = preprocess(folder, compiler, "-P", "-D__attribute__(x)=")
    return re.sub(r"\b(\d+)u\b", r"\1", without_bodies(text))


def macros(folder, compiler):
    """The ids of interfaces and the version of the contract."""
    text = preprocess(folder, compiler, "-dM")
    ids = dict(re.findall(r'^#define (GRAFT_\w+_ID) "([^"]+)"', text, re.MULTILINE))
    version = int(re.search(r"^#define GRAFT_ABI_VERSION (\d+)u", text, re.MULTILINE)[1])
    return ids, version


def statuses(text):
    """The failures as {number: name}."""
    return {int(value): name for name, value in re.findall(r"\bGRAFT_(ERR_\w+) = \((-\d+)\)", text)}


def write(folder, output, depfile, *compiler):
    import cffi
    text = declarations(folder, compiler)
    ids, version = macros(folder, compiler)
    builder = cffi.FFI()
    builder.set_source("graft._abi", None)
    builder.cdef(text)
    with contextlib.redirect_stdout(io.StringIO()):  # because cffi prints what it writes
        builder.emit_python_code(output)
    preprocess(folder, compiler, "-MM", "-MT", output, "-MF", depfile)
    with open(output, "a", encoding="utf-8") as file:
        file.write(f"\nABI_VERSION = {version}\nIDS = {ids!r}\nSTATUSES = {statuses(text)!r}\n")


if __name__ == "__main__":
    write(*sys.argv[1:])
