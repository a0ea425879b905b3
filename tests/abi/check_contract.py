#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules that the headers of abi/ set for themselves: check_contract.py ABI-FOLDER. Structs begin with
their size and have only types of fixed width. The comment of every call names its thread rule, and says whether the
call is collective, what it returns, and since which release it exists."""
import os
import re
import sys

import headers
import sources
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FIRST = (0, 1)  # the release of the frozen headers
SCALARS = {"uint8_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "float", "double", "char"}
# Structs of functions that others implement for the library. The comment of the struct describes these functions,
# which return no status of the library.
FILLED_BY_OTHERS = {"graft_host", "graft_mxm_args", "graft_kernel_ops", "graft_dense_ops",
                    "graft_gemm", "graft_transport", "graft_transport_ops", "graft_rollout"}
FIXED_WIDTH_ALIAS = re.compile(r"typedef (u?int(?:8|32|64)_t) (\w+);")
THREAD_WORDS = re.compile(r"^ \* (?:Threads +)?\s*\[([a-z-]+)\] ", re.MULTILINE)


def fields_of(found):
    for header in found:
        for fields in header.structs.values():
            yield from fields


def check_structs(found):
    aliases = {name for header in found for _, name in FIXED_WIDTH_ALIAS.findall(header.text)}
    first = [f"{fields[0].place}: {name} begins with {fields[0].type} {fields[0].name}"
             for header in found for name, fields in header.structs.items()
             if (fields[0].type, fields[0].name) != (("uint64_t", "magic") if header.ids and not header.is_interface()
                                                     else ("uint32_t", "size"))]
    tap.ok(not first, "every struct begins with uint32_t size, and what programs write to pipes with a magic number",
           *first)
    width = [f"{field.place}: {field.struct}.{field.name} is {field.type}" for field in fields_of(found)
             if not field.is_function and "*" not in field.type and field.type not in SCALARS | aliases]
    tap.ok(not width, "fields have types of fixed width: no bool, enum, long, size_t", *width)
    bits = [f"{os.path.basename(header.path)}: struct with a bit-field" for header in found
            if re.search(r"^\s+\w+\s+\w+\s*:\s*\d+\s*;", header.text, re.MULTILINE)]
    tap.ok(not bits, "no struct has bit-fields", *bits)
    named = [f"{os.path.basename(header.path)}: enum {name}" for header in found
             for name in re.findall(r"\benum (\w+)", header.text)]
    tap.ok(not named, "enums are anonymous, so none can be the type of a field", *named)


def comment_faults(call, tags):
    text = call.comment
    found = re.findall(r"\[([a-z]+-[a-z]+)\]", text)
    if not text:
        yield "has no comment"
    if not found:
        yield "has no thread tag"
    yield from (f"has the thread tag [{tag}], which graft_base.h does not explain" for tag in found if tag not in tags)
    if "ollective" not in text:
        yield "does not say whether it is collective"
    if not re.search(r"Since \d+\.\d+\.", text):
        yield "does not say since when"
    if call.type == "int32_t" and not re.search(r"\\return (OK;|as \w+\(\)|the codes of \w+\(\))", text):
        yield "does not list its status codes"
    if call.type == "void" and "NULL is legal" not in text:
        yield "frees something and does not say that NULL is legal"


def calls_of(found):
    """The calls whose headers have a comment for each call."""
    calls = [field for field in fields_of(found) if field.is_function and field.struct not in FILLED_BY_OTHERS]
    return calls + [function for header in found for function in header.functions if function.comment]


def check_comments(found):
    base = next(header for header in found if header.path.endswith("graft_base.h"))
    tags = set(THREAD_WORDS.findall(base.text))
    calls = calls_of(found)
    tap.ok(len(tags) > 2 and len(calls) > 20, f"{len(calls)} calls, {len(tags)} thread tags", tags)
    faults = [f"{call.place}: {call.struct} {call.name} {fault}" for call in calls
              for fault in comment_faults(call, tags)]
    tap.ok(not faults, "every call says who may call it, how, what it returns, and since when", *faults)
    codes = set(re.findall(r"X\((\w+), ", base.text))
    unknown = [f"{call.place}: {call.name} names {code}" for call in calls
               for code in re.findall(r"\bERR_[A-Z]+\b", call.comment) if code not in codes]
    tap.ok(len(codes) > 5 and not unknown, "the status codes they name exist", *unknown)


def since(found, old, release):
    """Yield (call, release that its comment names, whether that is right). A call that the frozen headers have
    belongs to their release. Any other call belongs to a later one, which is at most `release`."""
    frozen = {(call.struct, call.name) for call in calls_of(old)}
    for call in calls_of(found):
        said = re.search(r"Since (\d+)\.(\d+)\.", call.comment)
        pair = (int(said[1]), int(said[2])) if said else (0, 0)
        good = pair == FIRST if (call.struct, call.name) in frozen else FIRST < pair <= release
        yield call, pair, good


def check_since(found):
    old = headers.read_all(os.path.join(HERE, "frozen", "ABI-1"))
    version = re.search(r"version: '(\d+)\.(\d+)", sources.read(ROOT, "meson.build"))
    release = int(version[1]), int(version[2])
    faults = [f"{call.place}: {call.name} is since {pair}" for call, pair, good in since(found, old, release)
              if not good]
    tap.ok(not faults, "calls of the frozen headers are since their release, others since a later one", *faults)
    later = [pair for _, pair, good in since(found, old, FIRST) if not good]
    earlier = [pair for _, pair, good in since(found, [], release) if not good]
    tap.ok(later and earlier and set(later) == {release} and set(earlier) == {FIRST}, "what is wrong is found", later,
           earlier)


def check_ids(found):
    ids = [text for header in found for text in header.ids.values()]
    wrong = [f"{header.name}: {name} is {text}" for header in found for name, text in header.ids.items()
             if not re.fullmatch(r"graft\.draft\.[a-z]+/\d+" if header.is_draft() else r"graft\.[a-z]+/\d+", text)]
    tap.ok(ids and not wrong and len(set(ids)) == len(ids),
           "ids are graft.NAME/REVISION, those of drafts graft.draft.NAME/REVISION, each given once", *wrong)
    nameless = [header.name for header in found if header.is_draft() and len(header.ids) != 1]
    tap.ok(any(header.is_draft() for header in found) and not nameless, "every draft has an id", *nameless)
    lists = [header.name for header in found if re.search(r"enum \{[^}]*_ID\b", header.text)]
    tap.ok(not lists, "no enum lists the ids", *lists)
    tables = {header.path: [name for name, fields in header.structs.items()
                            if name not in FILLED_BY_OTHERS and any(f.is_function for f in fields)]
              for header in found if header.is_interface()}
    several = [f"{path}: {', '.join(names)}" for path, names in tables.items() if len(names) != 1]
    tap.ok(not several, "a header with an id has one table", *several)


def check_umbrella(found):
    """Check that graft.h includes everything a host needs: every header except the one for modules, and the loader."""
    names = {header.name: header.text for header in found if not header.is_draft()}
    included = set(re.findall(r'#include "(\w+\.h)"', names["graft.h"]))
    missing = set(names) - included - {"graft.h", "graft_module.h", "graft_load.h"}
    tap.ok(not missing and included <= set(names), "graft.h includes every stable header, and no draft", *missing)


def main():
    found = headers.read_all(sys.argv[1])
    check_structs(found)
    check_comments(found)
    check_since(found)
    check_ids(found)
    check_umbrella(found)
    tap.done()


if __name__ == "__main__":
    main()
