# SPDX-License-Identifier: Apache-2.0
"""Checks graft-info: test_graft_info.py GRAFT-INFO LIBRARY. It describes the library, its modules and its options as
text and as JSON, also of a library that is alone in a folder, and refuses a file that is no library."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

TIMEOUT = 60


def run(*args, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("GRAFT_")}
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=TIMEOUT, check=False,
                          env=dict(env, LC_ALL="C.UTF-8", **variables))


def report(*args, **variables):
    """Run graft-info --json. The result is the object, or None after a failed check."""
    result = run("--library", library, "--json", *args, **variables)
    try:
        return json.loads(result.stdout)
    except ValueError:
        tap.ok(False, f"{args} gives JSON", result.stdout[:500], result.stderr)
        return None


def option(found, key):
    return next((row for row in found["options"] if row["key"] == key), {})


def test_text():
    result = run("--library", library)
    head = result.stdout.splitlines()[0] if result.stdout else ""
    tap.ok(result.returncode == 0 and result.stderr == "" and head.startswith("Graft ") and "contract 1" in head and
           os.path.basename(library) in head, "the first line names release, contract and file", head, result.stderr)
    longer = run("--library", library, "--all", "lr=0.5").stdout
    tap.ok(" reference " in longer and "mxm.kernel = auto (default): text" in longer and "lr = 0.5 (host)" in longer,
           "--all lists modules and options", longer)
    short = run("--library", library, "lr=0.5").stdout
    tap.ok(" reference " in short and short.count(" = ") == 1 and "lr = 0.5 (host)" in short and
           re.search(rf"^  {longer.count(' = ') - 1} have their default", short, re.MULTILINE),
           "else options with their default values are counted", short)
    named = run(GRAFT_LIBRARY=library)
    tap.ok(named.stdout == result.stdout, "GRAFT_LIBRARY names the library too", named.stderr)


def test_json():
    found = report("mxm.kernel=reference", GRAFT_SEED="7")
    if found is None:
        return
    tap.ok(found["contract"] == 1 and os.path.samefile(found["library"], library), "JSON names contract and file",
           found["contract"], found["library"])
    rows = [(key, option(found, key).get("value"), option(found, key).get("source"))
            for key in ("mxm.kernel", "seed", "lr")]
    tap.ok(rows == [("mxm.kernel", "reference", "host"), ("seed", "7", "environment"), ("lr", "0.01", "default")],
           "options have value and source", rows)
    missing = [row["key"] for row in found["options"] if not row["help"] or row["scope"] == "unknown"]
    tap.ok(len(found["options"]) > 20 and not missing, "each has help and scope", missing)


def test_bad_module(folder):
    with open(f"{folder}/graft_kernel_text.so", "w", encoding="utf-8") as file:
        file.write("This is not a library.\n")
    lines = run("--library", library, "--load", f"module.path={folder}").stdout.splitlines()
    at = next((i for i, line in enumerate(lines) if line.split()[:2] == ["kernel", "text"]), -2)
    tap.ok("not usable" in lines[at] and f"{folder}/graft_kernel_text.so" in lines[at] and
           "not a shared library" in lines[at + 1],
           "a file that is no module is listed with the reason", *lines[at:at + 2])


def test_alone(folder):
    """A copy of the library with no modules beside it."""
    copy = shutil.copy(library, f"{folder}/libgraft.so")
    result = run("--library", copy, "--load")
    tap.ok(result.returncode == 0 and copy in result.stdout and "built in" in result.stdout and
           "loaded" not in result.stdout, "a library without modules is fine", result.stdout[:800], result.stderr)


def test_refusals(folder):
    for name, args, words in (("a missing library", ("--library", f"{folder}/none.so"), (f"{folder}/none.so",)),
                              ("a file that is no library", ("--library", __file__), (__file__,)),
                              ("an unknown option", ("--library", library, "mxm.kernle=x"), ("mxm.kernel",))):
        result = run(*args)
        lines = result.stderr.splitlines()
        tap.ok(result.returncode == 1 and result.stdout == "" and len(lines) == 1 and
               lines[0].startswith("graft-info: ") and all(word in lines[0] for word in words),
               f"{name} is refused in one line", result.returncode, result.stdout, result.stderr)
    for args in (("--nonsense",), ("nonsense",)):
        result = run(*args)
        tap.ok(result.returncode == 2 and args[0] in result.stderr and "usage:" in result.stderr,
               f"'{args[0]}' is refused with the usage", result.stderr)
    tap.ok(run("--help").stdout.startswith("usage:"), "--help")


program, library = map(os.path.abspath, sys.argv[1:3])
with tempfile.TemporaryDirectory(prefix="graft-info-") as base:
    for number, test in enumerate((test_bad_module, test_alone, test_refusals)):
        os.mkdir(f"{base}/{number}")
        test(f"{base}/{number}")
test_text()
if run("--library", library, "--json").returncode == 2:
    tap.skip("JSON", "graft-info was built without jansson")
else:
    test_json()
tap.done()
