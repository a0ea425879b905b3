# SPDX-License-Identifier: Apache-2.0
"""Checks that the draft of an interface gets a new revision number when it changes: check_drafts.py ABI-FOLDER
RECORD [--write]. RECORD has a line `ID KIND NAME: WHAT` for each declaration of a revision. For a struct, WHAT is
the number of its fields and a hash of their names, types and offsets; for types, macros and enum values it is their
definition. A new field at the end of a struct, or a new name, needs no new revision, and --write records it. Any
other change needs a new number in the id of the header, which --write also records."""
import hashlib
import os
import re
import shutil
import sys
import tempfile

import contract
import headers
import sources
import tap

COMMAND = "PYTHONPATH=tests/harness python3 tests/abi/check_drafts.py abi tests/abi/drafts.txt --write"


def parts_of(folder):
    """The contents of the drafts as {ID: {KIND NAME: [lines]}}; a struct has a line for each field, in order."""
    found = headers.read_all(folder)
    drafts = [header for header in found if header.is_draft()]
    names = {header.name: contract.enumerators(sources.blank_out(header.text)) for header in drafts}
    questions = list(contract.layout_questions(drafts)) + [(name, name) for of in names.values() for name in of]
    answers = {name: " ".join(numbers) for name, *numbers in contract.ask("cc", "c", folder, found, questions)}
    parts = {}
    for header in drafts:
        identity, = header.ids.values()
        part = {f"struct {struct}": [f"{field.name} {answers[f'{struct}.{field.name}']} {field.whole}"
                                     for field in fields] for struct, fields in header.structs.items()}
        part.update({f"type {name}": [meaning] for name, meaning in header.types.items()})
        part.update({f"value {name}": [answers[name]] for name in names[header.name]})
        macros = [contract.split(line) for line in contract.macro_lines(header.text)]
        part.update({name: [value] for name, value in macros if name.split()[1] not in header.ids})
        parts[identity] = part
    return parts


def digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def record_of(identity, name, lines):
    what = f"{len(lines)} fields {digest(lines)}" if name.startswith("struct ") else lines[0]
    return f"{identity} {name}: {what}"


def changes(part, recorded):
    """Sentences about what a revision has lost, and about what differs from the record."""
    for name, what in recorded.items():
        lines = part.get(name)
        count = re.match(r"(\d+) fields (\w+)$", what) if name.startswith("struct ") else None
        if lines is None:
            yield f"{name} is gone"
        elif count and digest(lines[:int(count[1])]) != count[2]:
            yield f"{name} is another one in its first {count[1]} fields"
        elif not count and lines != [what]:
            yield f"{name} was '{what}', and is now '{lines[0]}'"


def read_record(lines):
    """Parse a record into {ID: {KIND NAME: WHAT}}."""
    recorded = {}
    for line in lines:
        identity, _, rest = line.partition(" ")
        name, what = contract.split(rest)
        recorded.setdefault(identity, {})[name] = what
    return recorded


def faults(folder, lines):
    """Compare the drafts of a folder with the record. The result is a pair: changes that need a new revision, and new
    contents that are not recorded."""
    parts, recorded = parts_of(folder), read_record(lines)
    broken = [f"{identity}: {change}; give it another revision" for identity, part in parts.items()
              for change in changes(part, recorded.get(identity, {}))]
    for identity in parts:
        name, revision = identity.rsplit("/", 1)
        latest = max([int(other.rsplit("/", 1)[1]) for other in recorded if other.startswith(name + "/")], default=0)
        if int(revision) < latest:
            broken.append(f"{identity}: revision {latest} was there already")
    now = [record_of(identity, name, of) for identity, part in parts.items() for name, of in part.items()]
    return broken, [line for line in now if line not in lines]


def written(folder, lines):
    """The record with all new declarations. A struct that has grown keeps one line."""
    broken, new = faults(folder, lines)
    if broken:
        sys.exit("\n".join(broken))
    names = {line.partition(": ")[0] for line in new}
    return [line for line in lines if line.partition(": ")[0] not in names] + new


def edited(folder, work, edits):
    """Copy the headers, with texts of graft_stream.h replaced."""
    copy = os.path.join(work, str(len(os.listdir(work))))
    shutil.copytree(folder, copy)
    path = os.path.join(copy, "draft", "graft_stream.h")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for old, new in edits.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return copy


def check_edits(folder, lines):
    prototype = {"double budget, int32_t max_steps": "int32_t max_steps, double budget"}
    field = {"double   seconds; ": "int64_t  seconds; "}
    value = {"GRAFT_STREAM_STEPS_DONE = 3 ": "GRAFT_STREAM_STEPS_DONE = 4 "}
    end = {"} graft_stream_status;": "    double   later; /**< new */\n} graft_stream_status;"}
    revision = {'"graft.draft.stream/1"': '"graft.draft.stream/2"'}
    with tempfile.TemporaryDirectory(prefix="graft-drafts-") as work:
        for what, edit in (("a parameter", prototype), ("a field", field), ("a value", value)):
            broken, _ = faults(edited(folder, work, edit), lines)
            tap.ok(len(broken) == 1 and "give it another revision" in broken[0],
                   f"{what} that changes under the same revision is refused", *broken)
        copy = edited(folder, work, {**prototype, **revision})
        later = written(copy, lines)
        tap.ok(faults(copy, lines)[0] == [] and faults(copy, later) == ([], []) and set(lines) < set(later),
               "with a new revision it is taken, and the old one stays on record")
        tap.ok("revision 2 was there already" in " ".join(faults(folder, later)[0]), "a revision never comes again")
        copy = edited(folder, work, end)
        tap.ok(faults(copy, lines)[0] == [] and faults(copy, written(copy, lines)) == ([], []) and
               len(written(copy, lines)) == len(lines), "structs may grow at their end")


def main():
    folder, path = sys.argv[1:3]
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    if "--write" in sys.argv:
        lines = written(folder, lines)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
    broken, new = faults(folder, lines)
    tap.ok(lines and not broken, "what drafts promise changes only with their revision", *broken)
    tap.ok(not new, "the record has all of today's drafts", *new, f"to record them: {COMMAND}")
    check_edits(folder, lines)
    tap.done()


if __name__ == "__main__":
    main()
