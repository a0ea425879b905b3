#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks hosts and modules that are newer than the library: check_growth.py ROOT LIBGRAFT. The newer headers are
those of abi/ with one more field at the end of every struct. Examples that are compiled with them must run with this
library. The library may give no table to a host that asks for the new field, and must load a kernel module that is
compiled with the newer headers. Every call of every table is also made with NULL and 0 as all arguments, which must
not crash."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import compilers
import contract
import headers
import sources
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE_TESTS = ("test_sizes.c", "test_struct_sizes.c", "test_negotiation.c", "test_modules.c", "module_variant.c",
              "test_module_choice.c")
EXAMPLES = {"smallest.c": "mxm.kernel = reference", "aggregate.c": "12 2 4 6 8 10 12 14 16 18 20 10",
            "means.cc": "(3, 30)\n(1, 10)\n(1, 10)\n"}
HEAD = """
#include "graft_load.h"
static const graft_api *api;
static graft_error error;
static int count, failed;
static void tell(int good, const char *what) {
    printf("%s %d - %s\\n", good ? "ok" : "not ok", ++count, what);
    failed += !good;
    fflush(stdout);
}
static int is_refused(int32_t rc) {
    return rc < 0 && error.code == rc && error.message[0] != 0 && error.where[0] != 0;
}
"""
OPEN = """
int main(int argc, char **argv) {
    error = GRAFT_INIT(graft_error);
    if (argc < 2 || graft_load(argv[1], NULL, &api, &error) < 0) {
        printf("%s\\n", error.message);
        return 2;
    }
"""
CLOSE = """
    api->close(api->context);
    return failed > 0;
}
"""


def tables(found):
    """Yield (id, struct) of every interface."""
    for header in found:
        for identifier in header.ids:
            for struct, fields in header.structs.items():
                if fields[1].name == "reserved" and any(field.is_function for field in fields):
                    yield identifier, struct


def check_sizes(found):
    """Check that the tests of sizes pass each struct with a smaller and with a larger size."""
    text = "".join(sources.read(HERE, name) for name in SIZE_TESTS)
    missing = [struct for header in found for struct, fields in header.structs.items()
               if fields[0].name == "size" and not any(field.is_function for field in fields[1:3] + fields[-2:])
               and not re.search(rf"\b{struct}\b", text)]
    tap.ok(not missing, f"each struct has a test of its sizes in {', '.join(SIZE_TESTS)}", *missing)


def newer_headers(folder, work):
    copy = os.path.join(work, "abi")
    shutil.copytree(folder, copy)
    for header in headers.read_all(copy):
        with open(header.path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^} (graft_\w+);", r"    uint64_t added;\n} \1;", header.text, flags=re.MULTILINE))
    return copy


def build(language, folder, path_or_text, binary, *options):
    is_text = "\n" in path_or_text
    command = ["cc" if language == "c" else "c++", "-w", "-I", folder, *options, "-x", language]
    good, said = compilers.run([*command, "-" if is_text else path_or_text, "-o", binary, "-ldl", "-lpthread"],
                               path_or_text if is_text else None)
    if not good:
        tap.ok(False, f"{os.path.basename(binary)} compiles", said)
    return good


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)


def newer_host(found):
    """Make the source of a program that asks for every table, with the new field and without it, and runs with a
    newer module."""
    lines = []
    for identifier, struct in tables(found):
        lines += [f'    tell(graft_interface(api, {identifier}, GRAFT_HAS({struct}, added)) == NULL &&',
                  f"         graft_interface(api, {identifier}, GRAFT_HAS({struct}, reserved)) != NULL,",
                  f'         "{struct}: a newer host gets the table, and is told that it ends before the new call");']
    lines += ["    if (argc > 2) tell(api->load_module(api->context, argv[2], &error) == GRAFT_OK,",
              '                       "a module that is newer than the library loads");']
    return contract.source(found, [HEAD, OPEN, *lines, CLOSE])


def call_lines(expression, field, first):
    """The code of one call with 0 for every argument; `first` replaces the first argument."""
    kinds = headers.parameters_of(re.search(r"\(\*\)\((.*)\)$", field.whole)[1]).split(", ")
    values = ["&error" if kind == "graft_error *" else "0" for kind in kinds]
    values[0] = first if first and kinds[0] == "graft_context *" else values[0]
    call = f"{expression}({', '.join(values)})"
    name = f"{field.struct or 'graft'}.{field.name}, {'with its context' if first else 'of null and 0'}"
    yield f'    printf("# {name}\\n"), fflush(stdout), error = GRAFT_INIT(graft_error);'
    if field.type == "int32_t":
        yield f'    rc = {call}, tell(is_refused(rc), "{name} is refused with a sentence");'
    elif field.type == "void":
        yield f'    {call}, tell(1, "{name} does nothing");'
    else:
        yield f'    tell({call} == 0, "{name} gives 0");'


def slot_host(found):
    """Make the source of a program that makes every call of every table."""
    lines = ["    int32_t rc;", "    (void)rc;"]
    slots = {field.name: field for header in found for struct, fields in header.structs.items() if struct == "graft_api"
             for field in fields if field.is_function}
    for name, field in slots.items():
        lines += [f'    tell(api->{name} != NULL, "graft_api.{name} is there");',
                  *call_lines(f"api->{name}", field, "")]
    for number, (identifier, struct) in enumerate(tables(found)):
        lines += [f"    const {struct} *t{number} = graft_interface(api, {identifier}, sizeof({struct}));",
                  f'    tell(t{number} != NULL, "{struct} is whole");', f"    if (t{number} == NULL) return 1;"]
        for field in next(header.structs[struct] for header in found if struct in header.structs):
            if field.is_function:
                lines += [f'    tell(t{number}->{field.name} != NULL, "{struct}.{field.name} is there");',
                          *call_lines(f"t{number}->{field.name}", field, ""),
                          *call_lines(f"t{number}->{field.name}", field, "api->context")]
    return contract.source(found, [HEAD, OPEN, *lines, CLOSE])


def hand_on(name, result, least):
    """Print the checks of a program as checks of this test."""
    points = re.findall(r"^(not ok|ok) \d+ - (.*)$", result.stdout, re.MULTILINE)
    for kind, text in points:
        if kind == "not ok":
            tap.ok(False, f"{name}: {text}")
    tap.ok(result.returncode == 0 and len(points) >= least, f"{name}: {len(points)} checks", result.returncode,
           result.stdout[-1000:], result.stderr)


def check_examples(root, newer, library, work):
    for name, expected in EXAMPLES.items():
        language = "c" if name.endswith(".c") else "c++"
        if language == "c++" and not compilers.is_there("c++"):
            tap.skip(f"newer {name}", "c++ is not installed")
            continue
        binary = os.path.join(work, "example")
        if build(language, newer, os.path.join(root, "examples", name), binary):
            result = run(binary, library)
            tap.ok(expected in result.stdout, f"{name}, compiled with newer headers, runs as ever", result.stdout,
                   result.stderr)


def main():
    root, library = map(os.path.abspath, sys.argv[1:3])
    folder = os.path.join(root, "abi")
    found = headers.read_all(folder)
    listed = list(tables(found))
    tap.ok(len(listed) == len([i for header in found if header.is_interface() for i in header.ids]) > 5,
           f"{len(listed)} ids have a table each", *listed)
    check_sizes(found)
    with tempfile.TemporaryDirectory(prefix="graft-growth-") as work:
        newer, host = newer_headers(folder, work), os.path.join(work, "host")
        module = os.path.join(work, "graft_kernel_newer.so")
        variant = os.path.join(HERE, "module_variant.c")
        options = ["-shared", "-fPIC", '-DMODULE_NAME="newer"']
        if build("c", newer, variant, module, *options) and build("c", newer, newer_host(found), host):
            hand_on("a host newer than the library", run(host, library, module), len(listed) + 1)
        check_examples(root, newer, library, work)
        if build("c", folder, slot_host(found), host):
            hand_on("every call of every table", run(host, library), 100)
    tap.done()


if __name__ == "__main__":
    main()
