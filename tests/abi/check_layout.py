#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where every field of every public struct lies: check_layout.py ABI-FOLDER LAYOUT-FILE [--write].

A program made from the headers prints sizes and offsets; they are compared with the file, which changes only when a
struct grows at its tail, or is new, and then by --write. Any other difference needs a new interface id instead."""
import os
import platform
import re
import shutil
import sys
import tempfile

import compilers
import headers
import tap

FOOT = """
int main(void) {
    for (unsigned long i = 0; i < sizeof list / sizeof *list; i++)
        printf("%s %lu %lu\\n", list[i].name, list[i].offset, list[i].size);
    return 0;
}
"""


def program(found):
    names = [os.path.basename(header.path) for header in found]
    lines = [f'#include "{name}"' for name in names] + ["#include <stdio.h>"]
    lines += ["static const struct { const char *name; unsigned long offset, size; } list[] = {"]
    for header in found:
        for struct, fields in header.structs.items():
            lines += [f'{{ "{struct}", 0, sizeof({struct}) }},']
            lines += [f'{{ "{struct}.{field.name}", offsetof({struct}, {field.name}), '
                      f"sizeof((({struct} *)0)->{field.name}) }}," for field in fields]
    return "\n".join(lines + ["};", FOOT])


def measure(compiler, language, folder, work):
    """([NAME, OFFSET, SIZE], ...), or what the compiler said."""
    binary = os.path.join(work, "layout")
    source = program(headers.read_all(folder))
    good, said = compilers.run([compiler, "-w", "-I", folder, "-x", language, "-", "-o", binary], source)
    if good:
        good, said = compilers.run([binary])
    return ([line.split() for line in said.splitlines()], "") if good else (None, said)


def differences(golden, now):
    before, after = ({row[0]: row[1:] for row in rows} for rows in (golden, now))
    for name, row in before.items():
        if name not in after:
            yield f"{name} is gone"
        elif "." not in name and int(after[name][1]) > int(row[1]):
            yield f"{name} grew from {row[1]} to {after[name][1]} bytes: if only its tail is new, use --write"
        elif after[name] != row:
            yield f"{name} had offset and size {row}, now {after[name]}: this needs a new interface id"
    for name in after:
        if name not in before:
            yield f"{name} is new: use --write"
    if list(before) != [name for name in after if name in before]:
        yield "the order of structs or fields has changed"


def padding(rows):
    """Bytes of a struct that belong to no field."""
    end, owner, total = 0, None, 0
    for name, offset, size in rows + [["end", "0", "0"]]:
        if "." in name:
            if int(offset) != end:
                yield f"{end}..{offset} before {name}"
            end = int(offset) + int(size)
            continue
        if owner is not None and end != total:
            yield f"{end}..{total} at the end of {owner}"
        end, owner, total = 0, name, int(size)


def check_mutants(folder, golden, work):
    """Changes that must not pass."""
    mutants = {"a field put in": [(r"n_rows, n_cols;", "n_rows, n_new, n_cols;")],
               "an exchange of two fields": [(r"\*row_ptr;", "*other;"), (r"\*col_idx;", "*row_ptr;"),
                                             (r"\*other;", "*col_idx;")],
               "a wider field": [(r"graft_dtype\s+value_type;", "int64_t value_type;")],
               "a field at the tail, without --write": [(r"\n\} graft_csr;", "\n    int64_t extra;\n} graft_csr;")]}
    with open(os.path.join(folder, "graft_matrix.h"), encoding="utf-8") as file:
        original = file.read()
    for name, edits in mutants.items():
        copy, text = os.path.join(work, "abi"), original
        for pattern, replacement in edits:
            text = re.sub(pattern, replacement, text, count=1)
        shutil.copytree(folder, copy)
        with open(os.path.join(copy, "graft_matrix.h"), "w", encoding="utf-8") as file:
            file.write(text)
        rows, said = measure("cc", "c", copy, work)
        tap.ok(rows and list(differences(golden, rows)), f"{name} is noticed", said)
        shutil.rmtree(copy)


def main():
    folder, path = sys.argv[1:3]
    if platform.machine() != "x86_64":
        tap.skip("layout", f"the layout file is of x86-64, this is {platform.machine()}")
        tap.done()
        return
    with tempfile.TemporaryDirectory(prefix="graft-layout-") as work:
        if "--write" in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(" ".join(row) + "\n" for row in measure("cc", "c", folder, work)[0])
        with open(path, encoding="utf-8") as file:
            golden = [line.split() for line in file]
        for language, table in (("c", compilers.C), ("c++", compilers.CXX)):
            for compiler in table:
                name = f"sizes and offsets of all structs by {compiler}"
                if not compilers.is_there(compiler):
                    tap.skip(name, f"{compiler} is not installed")
                    continue
                rows, said = measure(compiler, language, folder, work)
                tap.ok(rows is not None and not list(differences(golden, rows)), name, said,
                       *differences(golden, rows or []))
        tap.ok(not list(padding(golden)), "no struct has padding", *padding(golden))
        check_mutants(folder, golden, work)
    tap.done()


if __name__ == "__main__":
    main()
