#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header of the plugin and of the adapters compiles alone: check_headers.py ROOT BUILD. A file
that includes one header and nothing else is compiled by the command that compiles the plugin in this build. A header
without an include guard is a template, which a file includes once for each type; it is not checked."""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

import sources
import tap

GUARD = re.compile(r"^#pragma once$", re.MULTILINE)


def command_of(build):
    """The compiler and the flags of one file of the plugin."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    words = next(shlex.split(entry["command"]) for entry in commands if "plugin/base/error.c" in entry["file"])
    kept, skip = [], False
    for word in words:
        if skip or word in ("-c", "-MD", "-MQ", "-MF", "-o") or word.endswith("error.c"):
            skip = word in ("-MQ", "-MF", "-o")
            continue
        kept.append(word)
    return kept + ["-DISA=generic", "-DWIDE_BYTES=16", "-Wno-psabi", "-Wno-unused-function", "-fsyntax-only",
                   "-fdiagnostics-color=never", "-x", "c", "-"]


def compile_alone(command, build, root, header):
    name = os.path.relpath(os.path.join(root, header), build)
    done = subprocess.run(command, input=f'#include "{name}"\n', cwd=build, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "error:" in line]
    return "\n".join([header + ":", *said[:3]]) if done.returncode != 0 else None


def main():
    root, build = map(os.path.abspath, sys.argv[1:3])
    headers = [path for path in sources.files(root, ["plugin"])
               if path.endswith(".h") and GUARD.search(sources.read(root, path))]
    command = command_of(build)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = [fault for fault in pool.map(lambda path: compile_alone(command, build, root, path), headers) if fault]
    tap.ok(len(headers) > 30, "headers are found at all", len(headers))
    tap.ok(not faults, "every header of the plugin compiles alone", *faults)
    tap.ok(compile_alone(command, build, root, "plugin/no_such_header.h"), "what does not compile is found")
    tap.done()


if __name__ == "__main__":
    main()
