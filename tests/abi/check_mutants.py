#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that check_layout.py finds changes that would break hosts: check_mutants.py ABI-FOLDER. Each change below is
made in a copy of every header in which it is possible, and must be reported as incompatible, or at the end of a struct
as additive."""
import os
import re
import shutil
import sys
import tempfile

import check_layout
import contract
import headers
import tap

# Changes that must be found, by name. Each is made in one header.
FAMOUS = {
    "int32_t trust to int64_t": ("graft_mxm.h", [("int32_t trust", "int64_t trust")]),
    "ROWS and BITS swapped": ("graft_matrix.h", [("GRAFT_MASK_ROWS = 1", "GRAFT_MASK_ROWS = 2"),
                                                 ("GRAFT_MASK_BITS = 2", "GRAFT_MASK_BITS = 1")]),
    "ERR_IO and ERR_OPTION swapped": ("graft_base.h", [("X(ERR_IO, -7,", "X(ERR_IO, -8,"),
                                                       ("X(ERR_OPTION, -8,", "X(ERR_OPTION, -7,")]),
    "double dropout to int64_t": ("graft_mxm.h", [("double             dropout;", "int64_t            dropout;")]),
    "graft.mxm/1 to graft.mxm/2": ("graft_mxm.h", [('_ID "graft.mxm/1"', '_ID "graft.mxm/2"')]),
    "const taken from an argument": ("graft_mxm.h", [("const graft_csr *csr, int32_t", "graft_csr *csr, int32_t")]),
    "int32_t for uint32_t": ("graft_mxm.h", [("uint32_t           flags;", "int32_t            flags;")]),
    "another type behind graft_dtype": ("graft_matrix.h", [("int32_t graft_dtype", "uint32_t graft_dtype")]),
    "a value of an enum taken away": ("graft_base.h", [("X(ERR_FORKED, -10", "X(ERR_CHILD, -10")]),
}
OPTIONS = {
    "the scope of an option": ('seed, "seed", "0", SAME', 'seed, "seed", "0", EACH'),
    "the name of an option": ('"mxm.verify"', '"mxm.check"'),
    "the type of an option": ('X(INTEGER("0.."), seed,', 'X(TEXT(), seed,'),
    "a word of an option": ('X(GR_STREAM_FIFO, "fifo")', 'X(GR_STREAM_FIFO, "latest")'),
    "a live option": ('strict, "strict", "no", SAME, GR_LIVE', 'strict, "strict", "no", SAME, GR_EXPERT'),
}
HAS_CODE = ("graft_base.h", "graft_matrix.h")  # headers with code, which may no longer compile after a change
SLOT = re.compile(r"^ {4}(\w[\w ]*?\**)\(\*(\w+)\)\(([^;]*)\);", re.MULTILINE)
PLAIN = re.compile(r"^ {4}(uint32_t|int32_t|int64_t|double|uint64_t) +(\w+);", re.MULTILINE)


def cut(text, match, new, group=0):
    return text[:match.start(group)] + new + text[match.end(group):]


def swap(text, first, second, group):
    later = cut(text, second, first.group(group), group)
    return cut(later, first, second.group(group), group)


def slots_in_one_struct(text):
    """The matches of this pattern in the first struct that has two or more slots."""
    for struct in headers.STRUCT.finditer(text):
        slots = list(SLOT.finditer(text, struct.start(2), struct.end(2)))
        if len(slots) > 1:
            return slots
    return list(SLOT.finditer(text))


def changes_of(text):
    """Yield (name, changed text) of every change that is possible in a header."""
    slots = slots_in_one_struct(text)
    calls = [call for call in headers.PUBLIC_FUNCTION.finditer(text) if call[1] or "GRAFT_API" in call[0]]
    plain = [match for struct in headers.STRUCT.finditer(text)
             for match in PLAIN.finditer(text, struct.start(2), struct.end(2)) if match[2] not in ("size", "reserved")]
    if slots:
        yield "a parameter of a slot", cut(text, slots[0], "void *new_one, " + slots[0][3], 3)
        yield "what a slot returns", cut(text, slots[0], "int64_t " if slots[0][1] != "int64_t " else "int32_t ", 1)
    if len(slots) > 1:
        yield "a slot in the middle", cut(text, slots[1], "    void (*new_one)(void *self);\n" + slots[1][0])
        yield "two slots swapped", swap(text, slots[0], slots[1], 2)
    for call in calls[:1]:
        yield "a parameter of a function", cut(text, call, "void *new_one, " + call[4], 4)
        yield "what a function returns", cut(text, call, "graft_error *" if "*" not in call[2] else "int32_t ", 2)
    if plain:
        wide = {"int32_t": "uint32_t", "uint32_t": "int32_t", "double": "int64_t"}.get(plain[0][1], "double")
        yield "another type of a field", cut(text, plain[0], wide, 1)
        yield "another name of a field", cut(text, plain[0], "new_one", 2)
    for struct in list(headers.STRUCT.finditer(text))[:1]:
        body = struct[2].replace("\n    ", "\n    int64_t new_one;\n    ", 1)
        yield "a field in the middle", cut(text, struct, body, 2)
        yield "a byte at the tail", cut(text, struct, struct[2] + "\n    uint8_t new_one;", 2)
    for value in list(re.finditer(r"\bGRAFT_\w+ = (\d+)", text))[:1]:
        yield "a value of an enum", cut(text, value, str(int(value[1]) + 64), 1)
    for number in list(re.finditer(r"^#define GRAFT_\w+ [^\n]*?(\d+)", text, re.MULTILINE))[:1]:
        yield "a value of a macro", cut(text, number, str(int(number[1], 16) + 1), 1)
    for comment in list(re.finditer(r"/\*\*(?:(?!\*/).)*\*/\n(?: {4}|GRAFT_API|static inline)", text, re.DOTALL)):
        tag = headers.THREAD_TAG.search(comment[0])
        if tag:
            yield "a thread tag", text[:comment.start()] + comment[0].replace(tag[0] + " ", "", 1).replace(
                tag[0] + ".", "", 1) + text[comment.end():]
            word = re.search(r"[Cc]ollective", comment[0])
            if word:
                yield "a collective tag", text[:comment.start()] + comment[0].replace(word[0], "Alone", 1) + \
                    text[comment.end():]
            return


class Judge:
    """Compares the contract with copies that differ from it."""

    def __init__(self, folder, work):
        self.folder, self.copy = folder, os.path.join(work, "abi")
        self.rows, self.lines = contract.layout_and_promises(folder)
        shutil.copytree(folder, self.copy)

    def seen(self, name, text):
        """The changes that are reported if a header has another text."""
        path = os.path.join(self.copy, name)
        with open(path, encoding="utf-8") as file:
            original = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            rows, lines = contract.layout_and_promises(self.copy)
            changes = [*contract.layout_changes(self.rows, rows), *contract.promise_changes(self.lines, lines)]
            return changes, list(check_layout.padding(rows))
        except contract.Refused as refused:
            return [(False, name, f"does not compile: {str(refused)[-300:]}")], []
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(original)


def check_header(judge, header):
    """Make changes of each kind in one header. The result is the number of changes."""
    kinds, faults = [], []
    for kind, text in changes_of(header.text):
        kinds.append(kind)
        changes, padding = judge.seen(header.name, text)
        incompatible = [name for additive, name, _ in changes if not additive]
        is_misfit = any("compile" in what for _, _, what in changes) and header.name not in HAS_CODE
        if text == header.text or is_misfit or not (incompatible or padding):
            faults.append(f"{kind}: {changes}")
    tap.ok(not faults, f"{header.name}: {len(kinds)} changes are noticed: {', '.join(kinds)}", *faults)
    has_slots = any(field.is_function for fields in header.structs.values() for field in fields)
    needed = [kind for kind, is_there in (("a slot in the middle", has_slots), ("two slots swapped", has_slots),
                                          ("a byte at the tail", header.structs), ("a value of a macro", header.ids),
                                          ("what a function returns", header.functions)) if is_there]
    tap.ok(set(needed) <= set(kinds), f"{header.name} was changed in all that it has", *needed)
    return kinds


def check_famous(judge, found):
    texts = {header.name: header.text for header in found}
    for title, (name, edits) in FAMOUS.items():
        text = texts[name]
        for old, new in edits:
            assert text.count(old) == 1, f"{name} has not '{old}' once"
            text = text.replace(old, new)
        changes, _ = judge.seen(name, text)
        tap.ok(any(not additive for additive, _, _ in changes), f"{title} is noticed", changes)


def check_growth(judge, found):
    """Check that new slots, fields at the end of a struct, structs and enums are reported as additive."""
    texts = {header.name: header.text for header in found}
    text = texts["graft_mxm.h"].replace("\n} graft_mxm_api;", "\n    void (*new_one)(void *self);\n} graft_mxm_api;")
    text = text.replace("\n} graft_mxm_args;", "\n    int64_t new_one;\n} graft_mxm_args;")
    text = text.replace("GRAFT_EXTERN_C_END", "enum { GRAFT_NEW = 1 };\ntypedef struct graft_new {\n"
                        "    uint32_t size;\n    uint32_t reserved;\n} graft_new;\nGRAFT_EXTERN_C_END")
    changes, padding = judge.seen("graft_mxm.h", text)
    tap.ok(len(changes) == 12 and all(additive for additive, _, _ in changes) and not padding,
           "what is new at a tail, or by itself, is additive", *changes)
    tap.ok(judge.seen("graft_mxm.h", texts["graft_mxm.h"]) == ([], []), "no change is told of where there is none")


def file_with(old):
    """Find the options.h that has this text. The result is its name and its whole text."""
    for name in contract.option_files("options.h"):
        with open(os.path.join(contract.PLUGIN, name), encoding="utf-8") as file:
            text = file.read()
        if old in text:
            return name, text
    raise AssertionError(f"no list of options has '{old}'")


def check_options(judge):
    lines = contract.options(judge.folder)
    for title, (old, new) in OPTIONS.items():
        name, text = file_with(old)
        now = contract.options(judge.folder, {name: text.replace(old, new, 1)})
        changes = list(contract.promise_changes(lines, now))
        tap.ok(any(not additive for additive, _, _ in changes), f"a change of {title} is noticed", changes)


def main():
    folder = sys.argv[1]
    found = headers.read_all(folder)
    with tempfile.TemporaryDirectory(prefix="graft-mutants-") as work:
        judge = Judge(folder, work)
        silent = [header.name for header in found if not check_header(judge, header)]
        tap.ok(set(silent) <= {"graft.h", "graft_model.h"},
               "every header but those that only explain or include was changed", *silent)
        check_famous(judge, found)
        check_growth(judge, found)
        check_options(judge)
    tap.done()


if __name__ == "__main__":
    main()
