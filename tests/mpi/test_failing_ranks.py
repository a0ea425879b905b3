#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks graft-train when its ranks are killed, stopped and interrupted while they train: test_failing_ranks.py
LAUNCHER NAME PARTITIONER GRAFT-TRAIN, where NAME is "openmpi" or "mpich". Prints TAP."""
import itertools
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

launcher, mpi, partitioner = sys.argv[1:4]
del sys.argv[1:4]
from train_host import MODEL, TIMEOUT, base, data, differing_tensors, program, read_safetensors, run
from tap import done, ok

RANKS, DEADLINE = 3, 2
# The longest time that ranks may take: the deadline, the agreement on which rank missed it, the end of the processes,
# and some time for a busy machine.
PATIENCE = 30 + 5 * DEADLINE
TRAINED = [*MODEL, "threads=1", "dropout=0.3", "partition=hash"]
MARK = "GRAFT_TEST_RUN"
FILE = "/checkpoint.safetensors"
script = f"{base}/script"
numbers = itertools.count()


class Run:
    """A run whose ranks train until they are disturbed. Its processes are found by a mark in their environment. With
    `asleep` the ranks wait for a partitioner that never answers."""

    def __init__(self, *settings, options=(), asleep=False):
        self.mark = f"{os.getpid()}.{next(numbers)}"
        environment = dict(os.environ, LC_ALL="C", TERM="xterm", GRAFT_TEST_BEHAVIOUR="asleep", **{MARK: self.mark})
        command = [launcher, "-n", str(RANKS), *options, program, data, *TRAINED, f"halo.timeout={DEADLINE}",
                   "epochs=100000000", *settings]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, text=True, env=environment, start_new_session=True,
                                      preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        if asleep:
            self.wait_for_partitioner()
        else:
            for line in self.child.stdout:
                if line.startswith("epoch 3/"):
                    break
        self.pids = self.ranks(program)

    def wait_for_partitioner(self):
        end = time.monotonic() + PATIENCE
        while not self.ranks(partitioner) and time.monotonic() < end:
            time.sleep(0.05)

    def others(self):
        """The commands of processes of the run that are neither the launcher nor ranks."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    command = file.read().split("\0")
                with open(f"/proc/{pid}/environ") as file:
                    if f"{MARK}={self.mark}\0" not in file.read() + "\0":
                        continue
            except (OSError, UnicodeDecodeError):
                continue
            if any(name in command for name in ("sleep", partitioner, script)):
                found.append(command)
        return found

    def ranks(self, name=None):
        """The processes that run now, by rank. With `name` only those of that program."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    command = file.read().split("\0")[0]
                with open(f"/proc/{pid}/environ") as file:
                    environment = dict(pair.split("=", 1) for pair in file.read().split("\0") if "=" in pair)
            except (OSError, UnicodeDecodeError):
                continue
            rank = environment.get("OMPI_COMM_WORLD_RANK", environment.get("PMI_RANK"))
            if environment.get(MARK) == self.mark and rank is not None and name in (None, command):
                found[int(rank)] = int(pid)
        return found

    def finish(self):
        """Wait for the end. The result is the output, or None if the run did not end, and the ranks that were left
        over, which are killed."""
        end = time.monotonic() + PATIENCE
        try:
            self.output, self.errors = self.child.communicate(timeout=PATIENCE)
            self.code = self.child.returncode
        except subprocess.TimeoutExpired:
            self.code = None
        left = self.ranks()
        while left and time.monotonic() < end:
            time.sleep(0.05)
            left = self.ranks()
        for pid in left.values():
            os.kill(pid, signal.SIGKILL)
        if self.code is None:
            self.child.kill()
            self.output, self.errors = self.child.communicate()
        return self.code is not None and not left

    def said(self):
        """The lines that the program itself printed, because launchers also print lines when a process fails."""
        return [line for line in self.errors.splitlines()
                if line.startswith("graft-train: ") and not line.startswith("graft-train: warning: ")]

    def facts(self):
        return f"it ended with {self.code}", self.output[-2000:], self.errors[-2000:]


def accused(rank, lines):
    return len(lines) == 1 and lines[0].startswith(f"graft-train: rank {rank} did not answer")


def told(settings):
    return "".join(f", {setting}" for setting in settings)


def test_killed(rank, *settings):
    one = Run(*settings)
    os.kill(one.pids[rank], signal.SIGKILL)
    ok(one.finish() and one.code != 0, f"rank {rank} is killed{told(settings)}: all end, with a failure", *one.facts())
    if mpi != "openmpi":
        return  # this launcher ends the other ranks at once, whatever the options are
    one = Run(*settings, options=["--enable-recovery"])
    os.kill(one.pids[rank], signal.SIGKILL)
    ok(one.finish(), f"rank {rank} is killed{told(settings)}, and the launcher lets the others live: they end",
       *one.facts())
    ok(accused(rank, one.said()), "and say once whom they missed", one.errors)


def test_killed_early():
    """Kill the first rank while a script is partitioning for it, which has started other processes."""
    with open(script, "w") as file:
        file.write(f'#!/bin/sh\nsleep 100 &\n(sleep 100; true) &\n"{partitioner}"\n')
    os.chmod(script, 0o755)
    one = Run("partition=metis", f"partition.program={script}", asleep=True)
    ran = one.others()
    begin = time.monotonic()
    os.kill(one.pids[0], signal.SIGKILL)
    while one.others() and time.monotonic() < begin + 2:
        time.sleep(0.02)
    left = one.others()
    fine = one.finish()
    ok(len(ran) == 5 and not left, "the first rank is killed while a script partitions: its processes are gone", ran,
       left)
    ok(fine and one.code != 0, "and the launcher ends", *one.facts())


def test_stopped(rank, *settings):
    one = Run(*settings)
    begin = time.monotonic()
    os.kill(one.pids[rank], signal.SIGSTOP)
    fine = one.finish()
    ok(fine and one.code != 0, f"rank {rank} is stopped{told(settings)}: all end, with a failure", *one.facts())
    ok(accused(rank, one.said()), "and it is named, once", one.errors)
    ok(time.monotonic() - begin >= DEADLINE, "after the deadline")


def test_interrupted(name, number, at_launcher=False):
    saved, report = f"{base}/{name}", f"{base}/{name}.json"
    # The launcher of Open MPI waits one second, or a given number, before it asks its ranks to end, and again before it
    # kills them. During this time it does not read what they print. Epochs are so short that the pipe to it gets full.
    waits = at_launcher and mpi == "openmpi"
    options = ["--mca", "odls_base_sigkill_timeout", "3"] if waits else []
    # On a busy machine the launcher of MPICH sometimes loses the exit status of ranks when it is interrupted, so ranks
    # write their status to a file.
    written = f"{base}/codes" if at_launcher and not waits else None
    if written:
        options = ["bash", "-c", f'trap : INT; "$@"; code=$?; echo $code >> "{written}"; exit $code', "rank"]
    one = Run("--save", saved, "--json", report, *(["--set", "layers=2", "hidden=4"] if waits else []),
              options=options)
    os.kill(one.child.pid if at_launcher else one.pids[1], number)
    fine = one.finish()
    codes = [1 if waits else 128 + number]
    if written:
        with open(written) as file:
            fine = fine and file.read().split() == [str(codes[0])] * RANKS
        codes.append(0)
    found = re.search(r"interrupted after epoch (\d+) of \d+, saved in ", one.errors)
    if not ok(fine and one.code in codes and found and len(one.said()) == 1,
              f"{name}: told once, and all end with {codes}", *one.facts()):
        return None
    epoch = int(found.group(1))
    with open(report) as file:
        told = json.load(file)
    ok(told["interrupted"] and told["epochs"] == epoch == len(told["history"]) and told["test_accuracy"] > 0,
       f"{name}: measured and reported", told["epochs"], epoch)
    stored = read_safetensors(saved + FILE)[1]["progress.epoch"][2]
    ok(struct.unpack("<q", stored) == (epoch,), f"{name}: and saved")
    return saved, epoch


def test_interrupted_early(rank):
    """Interrupt the ranks while the first one waits for a partitioning program."""
    saved = f"{base}/early {rank}"
    one = Run("partition=metis", f"partition.program={partitioner}", "halo.timeout=60", "--save", saved, asleep=True)
    begin = time.monotonic()
    os.kill(one.pids[rank], signal.SIGINT)
    fine = one.finish()
    ok(fine and one.code == 130 and time.monotonic() - begin < 20 and len(one.said()) == 1 and
       "interrupted before there was anything to save" in one.errors and not os.path.exists(saved + FILE),
       f"rank {rank} is interrupted while the graph is partitioned: reported once, and all exit with 130", *one.facts())
    ok(not one.ranks(partitioner), "and so does the partitioner")


def launch(ranks, *args):
    return subprocess.run([launcher, "-n", str(ranks), program, data, *TRAINED, "halo.timeout=60", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=TIMEOUT)


def last_losses(path):
    with open(path) as file:
        return [entry["loss"] for entry in json.load(file)["history"]][-4:]


def test_resumed(saved, epoch):
    """Resume an interrupted run with the same number of ranks, with more, with fewer, and in one process."""
    total = f"epochs={epoch + 4}"
    straight = launch(RANKS, total, "--save", f"{base}/straight", "--json", f"{base}/straight.json")
    same = launch(RANKS, total, "--resume", saved, "--save", f"{base}/same")
    ok(straight.returncode == 0 and same.returncode == 0 and
       not differing_tensors(f"{base}/straight{FILE}", f"{base}/same{FILE}"),
       "resumed, ranks come to the bits of a run that was not interrupted", straight.stderr, same.stderr)
    expected = last_losses(f"{base}/straight.json")
    for ranks in (1, 2, 4):
        args = (total, "--resume", saved, "--json", f"{base}/{ranks}.json")
        result = launch(ranks, *args) if ranks > 1 else run(data, *TRAINED, *args)
        found = last_losses(f"{base}/{ranks}.json") if result.returncode == 0 else []
        ok(len(found) == 4 and all(abs(a - b) <= 1e-4 * b for a, b in zip(found, expected)),
           f"resumed with {ranks}, to the same losses within rounding", result.stderr, found, expected)


# Kill the first rank, which prints, also while stale rows are in flight between epochs. test_random_signals.py tries
# other ranks, moments and options.
test_killed(0)
test_killed_early()
test_killed(1, "halo.staleness=1")
test_stopped(0, "halo.staleness=1", "model=gat")
checkpoint = test_interrupted("a rank is interrupted", signal.SIGINT)
if checkpoint:
    test_resumed(*checkpoint)
for number in (0, RANKS - 1):
    test_interrupted_early(number)
test_interrupted("a rank is terminated", signal.SIGTERM)
test_interrupted("the launcher is interrupted", signal.SIGINT, at_launcher=True)
done()
