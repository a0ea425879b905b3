#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the contract in abi/ only grows: check_layout.py ABI-FOLDER LAYOUT-FILE [--write | --freeze].
LAYOUT-FILE has the offset and size of every field, which are the same on all processors with 64-bit pointers. Beside
it, contract.txt has types, values of enums and macros, tags of calls, and options. The test compares both files with
what compilers report about the headers. A field at the end of a struct, or a new name, is additive, and --write
records it. The frozen headers of ABI-1 are compiled too. A change of something in them needs a line with its reason
in frozen/ledger.txt. For a release, --freeze replaces the frozen headers and the list of options beside them by
today's; the ledger then needs a line for the new baseline."""
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile

import compilers
import contract
import headers
import tap

COMMAND = "PYTHONPATH=tests/harness python3 tests/abi/check_layout.py abi tests/abi/layout.txt --write"
CROSS = {"aarch64": "aarch64-linux-gnu-gcc", "x86_64": "x86_64-linux-gnu-gcc"}
FROZEN = "ABI-1"
FROZEN_RELEASE = "0.1"  # whose headers say "Since 1"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def read_layout(path):
    return [line.split() for line in read(path)]


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def told(changes):
    """Sentences about the changes, and about the command that records them."""
    lines = [f"{'additive' if additive else 'INCOMPATIBLE'}: {name} {what}" for additive, name, what in changes]
    if not all(additive for additive, _, _ in changes):
        lines += [f"What is incompatible needs a new id or name, unless it is younger than {FROZEN}."]
    return lines + ([f"To take them over: {COMMAND}"] if changes else [])


def padding(rows):
    """Yield the bytes of structs that belong to no field."""
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


def compiler_of(machine):
    """A C compiler for a processor, or None."""
    compiler = "cc" if machine == platform.machine() else CROSS[machine]
    good = compilers.is_there(compiler) and compilers.run([compiler, "-E", "-x", "c", "-"], "#include <stdio.h>\n")[0]
    return compiler if good else None


def attempt(function, *arguments):
    """Call a function. The result is a pair: what it returned and "", or None and the message of the compiler."""
    try:
        return function(*arguments), ""
    except contract.Refused as refused:
        return None, str(refused)


def write_all(folder, golden):
    write(f"{golden}/layout.txt", [" ".join(row) for row in contract.layout("cc", "c", folder)])
    write(f"{golden}/contract.txt", contract.promises(folder) + contract.options(folder))


def freeze(folder, golden):
    """Replace the headers of the frozen contract and its options; the host and the module there stay."""
    frozen = f"{golden}/frozen/{FROZEN}"
    for header in headers.read_all(folder):
        shutil.copyfile(header.path, os.path.join(frozen, header.name))
    write(f"{frozen}/options.txt", contract.options(folder))


def check_layouts(folder, golden):
    rows = read_layout(f"{golden}/layout.txt")
    for language, table in (("c", compilers.C), ("c++", compilers.CXX)):
        for compiler in table:
            name = f"sizes and offsets of all structs by {compiler}"
            if not compilers.is_there(compiler):
                tap.skip(name, f"{compiler} is not installed")
                continue
            now, said = attempt(contract.layout, compiler, language, folder)
            changes = list(contract.layout_changes(rows, now or []))
            tap.ok(now and not changes, name, said, *told(changes))
    tap.ok(not list(padding(rows)), "no struct has padding", *padding(rows))
    odd = [row for row in rows if "." not in row[0] and int(row[2]) % 8 != 0]
    tap.ok(rows and not odd, "sizes are multiples of 8", *odd)
    for machine, cross in CROSS.items():
        if machine == platform.machine():
            continue
        if compiler_of(machine) is None:
            tap.skip(f"sizes and offsets on {machine}", f"{cross} or its C library is not installed")
            continue
        now, said = attempt(contract.layout, cross, "c", folder)
        changes = list(contract.layout_changes(rows, now or []))
        tap.ok(now and not changes, f"sizes and offsets on {machine}", said, *told(changes))


def check_promises(folder, golden):
    for compiler in compilers.C:
        name = f"every type is as it was read, by {compiler}"
        if not compilers.is_there(compiler):
            tap.skip(name, f"{compiler} is not installed")
            continue
        count, said = attempt(contract.check_types, compiler, folder)
        tap.ok(count and count > 300, name, said)
    now, said = attempt(lambda: contract.promises(folder) + contract.options(folder))
    changes = list(contract.promise_changes(read(f"{golden}/contract.txt"), now or []))
    tap.ok(now and not changes, "types, values, macros, tags and options are those of contract.txt", said,
           *told(changes))


def digest(folder):
    """A hash of all files below a folder, and of their names."""
    total = hashlib.sha256()
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            with open(os.path.join(path, name), "rb") as file:
                total.update(os.path.relpath(os.path.join(path, name), folder).encode() + b"\0" + file.read())
    return total.hexdigest()


def ledger_faults(changes, baseline, lines):
    """Yield what is wrong with the ledger: breaking changes without an entry, entries without a breaking change, and
    a changed baseline without an entry."""
    entries = dict(contract.split(line) for line in lines if line and not line.startswith("#"))
    reasons = {name for name, reason in entries.items() if len(reason) >= 20}
    broken = {name: what for additive, name, what in changes if not additive}
    yield from (f"{name} {what} since {FROZEN}: give it a new id or name, or a line '{name}: REASON' in "
                "frozen/ledger.txt" for name, what in broken.items() if name not in reasons)
    moves = [name for name in entries if name.startswith("baseline ")]
    yield from (f"the ledger has '{name}', which did not change" for name in entries
                if name not in broken and name not in moves)
    if not moves or moves[-1] != f"baseline {baseline}" or moves[-1] not in reasons:
        yield f"files of frozen/{FROZEN} changed: the last baseline in frozen/ledger.txt is to be 'baseline {baseline}'"


def frozen_contract(frozen):
    """The layout and the declarations of the frozen headers, whose comments name the release in the same form as
    today's."""
    with tempfile.TemporaryDirectory(prefix="graft-frozen-") as work:
        shutil.copytree(frozen, work, dirs_exist_ok=True)
        for header in headers.read_all(work):
            write(header.path, header.text.replace("Since 1.", f"Since {FROZEN_RELEASE}.").splitlines())
        layout, promises = contract.layout_and_promises(work)
    return layout, promises + read(f"{frozen}/options.txt")


def frozen_changes(golden):
    layout, promises = frozen_contract(f"{golden}/frozen/{FROZEN}")
    yield from contract.layout_changes(layout, read_layout(f"{golden}/layout.txt"))
    yield from contract.promise_changes(promises, read(f"{golden}/contract.txt"))


def check_ledger(golden):
    changes, baseline = list(frozen_changes(golden)), digest(f"{golden}/frozen/{FROZEN}")
    lines, name = read(f"{golden}/frozen/ledger.txt"), "call graft_api.set"
    faults = list(ledger_faults(changes, baseline, lines))
    tap.ok(not faults, f"what changed since {FROZEN} is additive, or stands in the ledger with its reason", *faults)
    broken, reason = [*changes, (False, name, "is gone")], "hosts were asked, and none of them used it"
    tap.ok(list(ledger_faults(broken, baseline, lines)) and
           list(ledger_faults(broken, baseline, [*lines, f"{name}: no"])) and
           list(ledger_faults(broken, baseline, [*lines, f"{name}: {reason}"])) == faults,
           "a break needs an entry with a reason")
    tap.ok(list(ledger_faults(changes, "0", lines)) and
           list(ledger_faults(changes, baseline, [*lines, f"{name}: {reason}"])),
           "so does a new baseline, and an entry needs a break")


def check_commands():
    """Check that the command in the messages names this file."""
    words = re.search(r"python3 (\S+) (\S+) (\S+)", COMMAND).groups()
    tap.ok(all(os.path.exists(os.path.join(contract.ROOT, word)) for word in words), "the messages name a command")


def main():
    folder, golden = sys.argv[1], os.path.dirname(os.path.abspath(sys.argv[2]))
    if "--write" in sys.argv or "--freeze" in sys.argv:
        write_all(folder, golden)
    if "--freeze" in sys.argv:
        freeze(folder, golden)
    check_layouts(folder, golden)
    check_promises(folder, golden)
    check_ledger(golden)
    check_commands()
    tap.done()


if __name__ == "__main__":
    main()
