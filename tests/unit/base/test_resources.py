#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks programs with few resources: test_resources.py HOST TEAM-HOST FEW-THREADS GRAFT-TRAIN. graft-train and a host
run with less and less address space, file descriptors, threads, file size and stack, without standard files, and in
folders where nothing can be written. Each run must succeed, or end with one sentence, within 10 seconds and without a
signal. Prints TAP."""
import os
import resource
import shutil
import subprocess
import sys
import time

host, team_host, few_threads = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]
from train_host import MODEL, base, data, program, read_safetensors
from tap import done, ok, skip

SECONDS = 10
MB, KB = 1 << 20, 1 << 10
OTHER_USER = 54321
RANKS = 3  # number of ranks in team_host
out = f"{base}/out"
library = os.environ["GRAFT_LIBRARY"]


def commands(settings=()):
    chosen = ["--set", *settings] if settings else []
    return (("graft-train", [program, data, *MODEL, "epochs=2", *chosen, "--save", out, "--json", f"{out}/r.json"]),
            ("a host", [host, f"{out}/model", "0", *settings]))


def limit(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


def fault_of(name, command, before, env=None):
    """Run a program. The result is None, or what is wrong with the run."""
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    os.chmod(out, 0o777)
    begin = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, preexec_fn=before,
                             env=dict(os.environ, LC_ALL="C", GRAFT_LIBRARY=library, **(env or {})))
    try:
        text = child.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return "it hangs"
    code = child.returncode
    if time.monotonic() - begin > SECONDS:
        return "it took too long"
    for file in os.listdir(out):
        if ".safetensors" in file or file.startswith("model"):
            try:
                read_safetensors(f"{out}/{file}")
            except Exception as fault:  # any exception is a fault of the run
                return f"{file} is damaged: {fault!r}"
    if code == 0 and (name != "a host" or "alive" in text):
        return None
    sentence = "graft-train: " in text or "error while loading shared libraries" in text or "cannot open shared" in text
    if code in (1, 2, 127) and sentence and "libgomp:" not in text:
        return None
    return f"it ends with {code}: {text[-300:]}"


def climb(what, rungs, settings=(), env=None):
    """One check for each program. A series has pairs (name, function that reduces a resource before exec)."""
    for name, command in commands(settings):
        faults = [(rung, fault_of(name, command, before, env)) for rung, before in rungs]
        faults = [f"{rung}: {fault}" for rung, fault in faults if fault]
        ok(not faults, f"{name}: {what}, {len(rungs)} rungs", *faults)


def test_address_space():
    sizes = (50, 100, 200, 300, 450, 640, 1000, 2000)
    rungs = [(f"{size} MB", limit(resource.RLIMIT_AS, size * MB)) for size in sizes]
    climb("address space", rungs, env={"OMP_NUM_THREADS": "2"})
    if os.path.exists(f"{os.path.dirname(library)}/graft_dense_cblas.so"):
        climb("address space with a BLAS", rungs[1:7], ("dense.module=cblas",), {"OMP_NUM_THREADS": "2"})


def test_threads():
    for count in (0, 1, 2):
        climb(f"{count} more threads than one", [(str(count), None)],
              env={"LD_PRELOAD": few_threads, "GRAFT_TEST_THREADS": str(count), "OMP_NUM_THREADS": "4"})

    def become(count):
        def before():
            resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
            os.setgroups([])
            os.setgid(OTHER_USER)
            os.setuid(OTHER_USER)
        return before

    if may_be_other():
        climb("processes of a user", [(str(count), become(count)) for count in (1, 2, 3)],
              env={"OMP_NUM_THREADS": "4"})
    else:
        skip("processes of a user", "this needs root, and files that all may read")


def test_settings():
    """With these variables OpenMP starts fewer threads than option "threads" asks for."""
    for variable, value in (("OMP_THREAD_LIMIT", "1"), ("OMP_THREAD_LIMIT", "3"), ("OMP_DYNAMIC", "true"),
                            ("OMP_MAX_ACTIVE_LEVELS", "0")):
        command = [program, data, *MODEL, "epochs=2", "threads=4"]
        run = subprocess.run(command, env=os.environ | {variable: value}, text=True, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, timeout=SECONDS, check=False)
        lines = [line for line in run.stderr.splitlines() if "of 4 threads" in line]
        ok(run.returncode == 0 and len(lines) == 1 and variable in lines[0],
           f"{variable}={value}: one warning has both numbers of threads, and the variable", run.stderr)


def teams_of(mode, room):
    """Run team_host where at most so many threads can start. The result is the sizes of its teams, or what it prints if
    it fails."""
    env = dict(os.environ, LD_PRELOAD=few_threads, GRAFT_TEST_THREADS=str(room), GRAFT_LIBRARY=library)
    run = subprocess.run([team_host, mode], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=SECONDS, check=False)
    lines = run.stdout.splitlines()
    if run.returncode != 0 or lines[-1:] != ["alive"]:
        return f"it ends with {run.returncode}: {run.stdout[-300:]}"
    return [int(word) for line in lines[:-1] for word in line.split()[1:]]


def test_teams():
    def two_contexts(room):
        return [min(4, 1 + room)] * 2

    def two_threads(room):
        first = min(4, 1 + room)
        left = room - (first - 1)  # the second thread of the host is included in `room`
        return [first] if left == 0 else [first, min(4, left)]

    for mode, expected, rooms in (("again", two_contexts, range(5)), ("second", two_threads, range(8))):
        faults = [(room, teams_of(mode, room), expected(room)) for room in rooms]
        faults = [f"{room} more threads: {found}, expected {right}" for room, found, right in faults if found != right]
        ok(not faults, f"team_host {mode}: every thread that can start is used, {len(rooms)} rungs", *faults)
    rooms = range(RANKS, RANKS + 10)
    for mode in ("ranks", "together"):
        found = [(room, teams_of(mode, room)) for room in rooms]
        faults = [f"{room} more threads: {teams}" for room, teams in found  # the first thread only waits for the ranks
                  if isinstance(teams, str) or sum(teams) != room]
        ok(not faults, f"team_host {mode}: every thread that can start is used once, {len(rooms)} rungs", *faults)


def may_be_other():
    """Whether the programs can be run by another user, which only root can try."""
    if os.geteuid() != 0:
        return False
    os.chmod(base, 0o755)
    return subprocess.run([host, "/none/x", "0"], user=OTHER_USER, group=OTHER_USER, extra_groups=[],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def test_files():
    climb("descriptors", [(str(count), limit(resource.RLIMIT_NOFILE, count))
                          for count in (3, 4, 5, 6, 7, 8, 10, 16, 64)])
    climb("bytes in a file", [(str(size), limit(resource.RLIMIT_FSIZE, size))
                              for size in (0, 1, 100, 2000, 4096, 8000, 100000)])
    fault = fault_of("graft-train", [program, data, *MODEL, "epochs=1", "--json", "/dev/full"], None)
    ok(fault is None, "graft-train: a full device", fault)


def test_read_only():
    def before():
        os.chmod(out, 0o555)
        os.setgroups([])
        os.setgid(OTHER_USER)
        os.setuid(OTHER_USER)

    if may_be_other():
        climb("a folder that is read-only", [("555", before)])
    else:
        skip("a folder that is read-only", "this needs root, and files that all may read")


def test_closed():
    def close(numbers):
        def before():
            for number in numbers:
                os.close(number)
        return before

    # With closed standard files there is no place for a sentence. The run must end without a signal, and files must be
    # whole.
    for numbers in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        for name, command in commands():
            shutil.rmtree(out, ignore_errors=True)
            os.mkdir(out)
            code = subprocess.run(command, preexec_fn=close(numbers), timeout=SECONDS, check=False,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, LC_ALL="C", GRAFT_LIBRARY=library)).returncode
            files = [f"{out}/{file}" for file in os.listdir(out) if not file.endswith(".json")]
            try:
                fault = None if files and all(read_safetensors(file) for file in files) else "no file"
            except Exception as error:  # any exception is a fault of the run
                fault = repr(error)
            ok(code in (0, 1) and fault is None, f"{name} without {numbers}", code, fault)


def test_stack():
    rungs = [(f"{size} KB", limit(resource.RLIMIT_STACK, size * KB)) for size in (32, 48, 64, 128, 256, 512, 8192)]
    faults = [(rung, fault_of("graft-train", commands()[0][1], before)) for rung, before in rungs]
    ok(not any(fault for _, fault in faults), f"graft-train: stack, {len(rungs)} rungs",
       *[f"{rung}: {fault}" for rung, fault in faults if fault])
    for size in (256, 512, 1024):
        fault = fault_of("a host", [host, f"{out}/model", str(size), "threads=2"], None)
        ok(fault is None, f"a host: a thread with a stack of {size} KB", fault)


test_address_space()
test_threads()
test_settings()
test_teams()
test_files()
test_read_only()
test_closed()
test_stack()
done()
