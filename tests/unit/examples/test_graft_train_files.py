#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the files that graft-train writes: test_graft_train_files.py GRAFT-TRAIN. They must be complete even
if the program is killed, and the next run must remove temporary files. Their permissions must follow the umask of the
user, symbolic links must be preserved, and several programs may write the same files. GRAFT_TEST_KILLS is the number of
killed runs. Prints TAP."""
import json
import os
import random
import subprocess
import time

from train_host import MODEL, base, data, program, read_safetensors, run
from tap import done, ok

KILLS = int(os.environ.get("GRAFT_TEST_KILLS", "30"))
OUT = f"{base}/out"
CHECKPOINT = f"{OUT}/checkpoint.safetensors"
SETTINGS = [*MODEL, "epochs=3", "threads=1"]
command = [data, *SETTINGS, "--json", f"{OUT}/r.json", "--profile", f"{OUT}/t.json", "--save", OUT]
NAMES = ["checkpoint.safetensors", "checkpoint.safetensors.previous", "r.json", "t.json"]


def fault_of_files():
    """Read all files that exist. The result is None, or what is wrong with them."""
    for name in os.listdir(OUT):
        try:
            if name in ("r.json", "t.json"):
                with open(f"{OUT}/{name}") as file:
                    json.load(file)
            elif name in NAMES:
                read_safetensors(f"{OUT}/{name}")
        except (ValueError, KeyError, AssertionError) as fault:
            return f"{name}: {fault!r}"
    return None


def test_killed():
    os.mkdir(OUT)
    begin = time.monotonic()
    run(*command)
    seconds = time.monotonic() - begin
    rng = random.Random(7)
    faults = []
    for _ in range(KILLS):
        child = subprocess.Popen([program, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds * rng.uniform(0.3, 1.2))
        child.kill()
        child.wait()
        faults.append(fault_of_files())
    ok(not any(faults), f"killed {KILLS} times, it leaves whole files", [fault for fault in faults if fault])
    # Leave temporary files like those of a process that was killed while it wrote.
    for name in NAMES[2:]:
        with open(f"{OUT}/{name}.graft-train.tmp", "w") as file:
            file.write("{")
    result = run(*command)
    ok(result.returncode == 0 and sorted(os.listdir(OUT)) == NAMES, "and the next run removes the rest",
       result.stderr, os.listdir(OUT))


def test_mask():
    os.umask(0o027)
    run(data, *SETTINGS, "--json", f"{base}/masked.json")
    os.umask(0o022)
    ok(os.stat(f"{base}/masked.json").st_mode & 0o777 == 0o640, "a file has the permissions that the mask leaves")


def test_links():
    """A symbolic link must be preserved, whether its target exists or not."""
    os.symlink("linked.json", f"{base}/link.json")
    for what in "does not exist", "exists":
        result = run(data, *SETTINGS, "--json", f"{base}/link.json")
        ok(result.returncode == 0 and os.path.islink(f"{base}/link.json") and os.path.isfile(f"{base}/linked.json"),
           f"behind a link, a target that {what} is the file", result.stderr)
    os.symlink("circle.json", f"{base}/circle.json")
    result = run(data, *SETTINGS, "--json", f"{base}/circle.json")
    ok(result.returncode == 1 and "circle.json" in result.stderr, "a circle of links is refused", result.stderr)


def test_together():
    children = [subprocess.Popen([program, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for _ in range(6)]
    errors = [child.communicate()[1] for child in children]
    ok(all(child.returncode == 0 for child in children) and fault_of_files() is None and
       sorted(os.listdir(OUT)) == NAMES, "six that write the same files end well", *errors, os.listdir(OUT))


test_killed()
test_mask()
test_links()
test_together()
done()
