#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""graft-train whose ranks get a signal at a random time: test_random_signals.py LAUNCHER NAME GRAFT-TRAIN [TRIES
[SIGNALS [SIDE_BY_SIDE [SEED [DEADLINE]]]]], where NAME is "openmpi" or "mpich" and SIGNALS is a list such as
STOP,CONT,TERM,KILL. Each try starts ranks with random options and sends one signal to a random rank, at a moment that
is uniform over the whole run, from the start of MPI to the end of the process. The suites make 8 tries; by hand:

    PYTHONPATH=tests/harness python3 tests/mpi/test_random_signals.py mpiexec.mpich mpich build/graft-train 200 STOP 6

On a busy machine a longer DEADLINE (halo.timeout) prevents ranks from reporting slow ranks as silent.

STOP   all other ranks end within the documented bound, with one sentence that names the stopped rank. A rank that waits
       inside MPI_Init or MPI_Finalize knows no rank to name: then each says that it waited there.
CONT   a rank that is stopped and continued before the deadline changes no bit of the checkpoint and the predictions.
TERM   the ranks agree to end, and save what they have.
KILL   the other ranks end within the same bound, by themselves or by their launcher.
Prints TAP, and a summary of what was met how often."""
import collections
import concurrent.futures
import contextlib
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

launcher, mpi = sys.argv[1:3]
del sys.argv[1:3]
more = sys.argv[2:]
del sys.argv[2:]
from train_host import base, data, differing_tensors, program, read_safetensors
from tap import done, ok

TRIES = int(more[0]) if more else 8
SIGNALS = (more[1] if len(more) > 1 else "STOP,CONT,TERM,KILL").split(",")
SIDE_BY_SIDE = int(more[2]) if len(more) > 2 else 8
SEED = int(more[3]) if len(more) > 3 else 18384
DEADLINE = int(more[4]) if len(more) > 4 else 4
RANKS = 3
MARK = "GRAFT_TEST_RUN"
FILE = "/checkpoint.safetensors"
BUSY = 3  # additional seconds for a busy machine, and for a rank that has not yet started before the first epoch
# What may happen when a rank does not answer, and the longest time for it in seconds; see
# examples/graft-train/README.md.
BOUNDS = {"agreed": DEADLINE + 3 * min(DEADLINE / 2, 10) + 2,
          "waited for the start of MPI": DEADLINE + 15,
          "waited for the end of MPI": 15,
          "had finished": 15,
          "ended by the launcher": DEADLINE + 15}
BOUND = max(BOUNDS.values())
MODELS = (["model=sage"], ["model=gcn"], ["model=gat", "heads=2"])
CODECS = ("f32", "bf16", "q8", "q4/q2", "q1", "adaptive")
PARTITIONS = ["hash", "block", "stream"]
if os.path.exists(os.path.join(os.path.dirname(program), "graft-metis")):
    PARTITIONS += ["metis"]
# The process writes its number to a file and then becomes the program. The program writes errors to a file, so that no
# launcher can lose them.
NOTE = 'echo $$ > "$0/pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@" 2> "$0/err.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'


def random_settings(rng):
    settings = [*rng.choice(MODELS), f"halo.codec={rng.choice(CODECS)}", f"partition={rng.choice(PARTITIONS)}",
                f"halo.staleness={rng.choice((0, 1))}", f"epochs={rng.choice((20, 100, 300))}"]
    return settings + (["halo.budget=error:0.05"] if "halo.codec=adaptive" in settings else [])


def birth_of(pid):
    """The start time of a running process, which distinguishes it from a later process with the same number; None if
    there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return fields[19] if fields[0] not in "ZX" else None


def processes_of(folder):
    """All processes of a job, which have the job's mark in their environment. They include partitioning programs and
    helpers of launchers."""
    found, mark = [], f"{MARK}={folder}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            continue
    return found


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Job:
    """A run of graft-train over ranks, with outputs in a folder of its own."""

    def __init__(self, name, settings, deadline, options=(), arguments=()):
        self.folder = f"{base}/{name}"
        os.mkdir(self.folder)
        command = [launcher, "-n", str(RANKS), *options, "sh", "-c", NOTE, self.folder, program, data, "--set",
                   "layers=2", "hidden=16", "threads=1", "dropout=0.3", f"halo.timeout={deadline}", *settings,
                   "--json", f"{self.folder}/report", "--save", f"{self.folder}/saved", "--predict",
                   f"{self.folder}/predicted", *arguments]
        environment = dict(os.environ, LC_ALL="C", TERM="xterm", **{MARK: self.folder})
        with open(f"{self.folder}/out", "w") as out, open(f"{self.folder}/err", "w") as err:
            self.child = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=environment,
                                          start_new_session=True)
        self.pids, self.births = {}, {}

    def read(self, name):
        path = f"{self.folder}/{name}"
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()

    def find(self, rank):
        """Whether a rank has written its process number."""
        text = self.read(f"pid.{rank}")
        if text.endswith("\n"):
            self.pids[rank] = int(text)
            self.births[rank] = birth_of(text.strip())
        return rank in self.pids

    def is_alive(self, rank):
        return self.births[rank] is not None and self.births[rank] == birth_of(self.pids[rank])

    def running(self, but=None):
        """The ranks that run, and those that the launcher has not yet started."""
        starts = self.child.poll() is None
        ranks = [rank for rank in range(RANKS) if rank != but]
        return [rank for rank in ranks if (self.is_alive(rank) if rank in self.pids or self.find(rank) else starts)]

    def end(self, patience):
        """Wait for the launcher, and kill the processes that are left. The result is whether the launcher ended, and
        whether a process was left."""
        try:
            self.child.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        fine = self.child.poll() is not None
        if not fine:
            self.child.kill()
        self.code = self.child.wait()
        self.running()
        gone = wait_until(lambda: not processes_of(self.folder), 5)
        for pid in processes_of(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return fine, not gone

    def said(self):
        """The lines that the program printed on all ranks."""
        return [line for rank in self.pids for line in self.read(f"err.{rank}").splitlines()
                if line.startswith("graft-train: ") and not line.startswith("graft-train: warning: ")]

    def warned(self):
        return "".join(self.read(f"err.{rank}") for rank in self.pids)

    def has_reported(self):
        """Whether rank 0 has written all its outputs."""
        return os.path.exists(f"{self.folder}/report")

    def facts(self):
        return f"code {self.code}", self.read("out")[-600:], *self.said(), self.read("err")[-1500:]


class Plan:
    """A set of options, with the results and the duration of a run without a signal. One of three plans resumes
    another run."""

    def __init__(self, number, settings):
        self.settings, self.arguments = settings, []
        if number % 3 == 1:
            first = Job(f"before{number}", [*settings, "epochs=10"], 60)
            first.end(100)
            self.arguments = ["--resume", f"{first.folder}/saved"]
        job = Job(f"plan{number}", settings, 60, arguments=self.arguments)
        self.folder = job.folder
        wait_until(lambda: job.find(0) or job.child.poll() is not None, 60)
        begin = time.monotonic()
        wait_until(lambda: not job.running(), 300)
        self.seconds = time.monotonic() - begin
        job.end(60)
        self.fine, self.facts = job.code == 0, job.facts()


def send(job, rank, number):
    if job.is_alive(rank):
        os.kill(job.pids[rank], number)


def survivors_end(job, rank):
    """The number of seconds until all other ranks have ended, or None if that takes longer than the bound."""
    begin = time.monotonic()
    fine = wait_until(lambda: not job.running(but=rank), BOUND + BUSY + job.plan.seconds)
    return time.monotonic() - begin if fine else None


def in_time(job, met, seconds):
    bound = BOUNDS.get(met, BOUND) + BUSY + (0 if "\nepoch " in job.read("out") else job.plan.seconds)
    return met if seconds <= bound else f"not in time: {met}"


def sentence_of(job, rank):
    """Judge the end of a job in which rank `rank` got the signal. An answer that begins with "not" means that the
    rules are broken."""
    said = job.said()
    named = [line for line in said if line.startswith(f"graft-train: rank {rank} did not answer")]
    # MPI may let some ranks continue. These then report a rank that MPI itself holds back.
    early = [line for line in said if re.match(r"graft-train: rank \d: .*(start of MPI|did not answer)", line)]
    if len(said) == len(named) == 1:
        return "agreed"
    if said:
        return "waited for the start of MPI" if len(early) == len(said) else "not one sentence with the right rank"
    if not job.has_reported():
        return "not a word"
    return "waited for the end of MPI" if "end of MPI" in job.warned() else "had finished"


def try_stop(job, rank, rng):
    send(job, rank, signal.SIGSTOP)
    seconds = survivors_end(job, rank)
    met = "not in time" if seconds is None else None
    send(job, rank, signal.SIGKILL)
    _, left = job.end(15)
    met = met or in_time(job, sentence_of(job, rank), seconds)
    return "not all processes ended" if left else met, seconds


def try_kill(job, rank, rng):
    send(job, rank, signal.SIGKILL)
    seconds = survivors_end(job, rank)
    fine, left = job.end(15)
    if seconds is None or left or not fine:
        return "not in time", seconds
    met = sentence_of(job, rank)
    if met == "not a word":
        met = "ended by the launcher" if job.code != 0 and not job.recovers else met
    return in_time(job, met, seconds), seconds


def try_cont(job, rank, rng):
    send(job, rank, signal.SIGSTOP)
    time.sleep(rng.uniform(0.1, 1.5))
    send(job, rank, signal.SIGCONT)
    fine, left = job.end(100 + 5 * job.plan.seconds)
    if not fine or left or job.code != 0 or job.said():
        return "not finished", None
    return "finished", None


def try_term(job, rank, rng):
    was_alive = job.is_alive(rank)
    send(job, rank, signal.SIGTERM)
    begin = time.monotonic()
    fine, left = job.end(BOUND + BUSY + job.plan.seconds)
    seconds = time.monotonic() - begin
    said = job.said()
    if not fine or left:
        return "not in time", seconds
    if job.code == 0 and job.has_reported() and not said:
        return "had finished", seconds
    if len(said) == 1 and "interrupted before there was anything to save" in said[0]:
        return "interrupted before the first epoch", seconds
    if len(said) == 1 and "interrupted after epoch" in said[0] and ", saved in" in said[0]:
        epoch = int(said[0].split("interrupted after epoch ")[1].split(" ")[0])
        stored = struct.unpack("<q", read_safetensors(f"{job.folder}/saved{FILE}")[1]["progress.epoch"][2])[0]
        with open(f"{job.folder}/report") as file:
            told = json.load(file)
        right = stored == epoch == told["epochs"] and told["interrupted"] and job.code == 128 + signal.SIGTERM
        return "interrupted and saved" if right else "not saved as it says", seconds
    if was_alive and job.code != 0 and not said:
        return "ended before it could listen" if not job.read("out").count("epoch ") else "not a word", seconds
    return "not one sentence", seconds


KINDS = {"STOP": (try_stop, DEADLINE), "KILL": (try_kill, DEADLINE), "CONT": (try_cont, 30), "TERM": (try_term, 30)}


def same_bits(job, plan):
    with open(f"{job.folder}/predicted", "rb") as mine, open(f"{plan.folder}/predicted", "rb") as theirs:
        same = mine.read() == theirs.read()
    return same and not differing_tensors(f"{job.folder}/saved{FILE}", f"{plan.folder}/saved{FILE}")


def one_try(number, kind, plan):
    rng = random.Random(f"{SEED} {number}")
    rank, part = rng.randrange(RANKS), rng.uniform(0, 1.02)
    act, deadline = KINDS[kind]
    recovers = kind == "KILL" and mpi == "openmpi" and rng.random() < 0.5
    job = Job(f"try{number}", plan.settings, deadline, ["--enable-recovery"] if recovers else [], plan.arguments)
    job.recovers, job.plan = recovers, plan
    wait_until(lambda: job.find(rank), 60)
    time.sleep(part * plan.seconds)
    epochs = job.read("out").count("\nepoch ")
    met, seconds = act(job, rank, rng)
    if met == "finished" and not same_bits(job, plan):
        met = "not the same bits"
    more = (", resumed" if plan.arguments else "") + (", survivors live" if recovers else "")
    name = (f"{kind} of rank {rank} after {part:.2f} of {plan.seconds:.2f} s and {epochs} epochs, "
            f"{' '.join(plan.settings)}{more}: {met}"
            f"{f', {seconds:.1f} s' if seconds is not None else ''}")
    return kind, met, seconds, name, job.facts()


def main():
    rng = random.Random(SEED)
    settings = [random_settings(rng) for _ in range(max(3, min(TRIES // 4, 16)))]
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        plans = list(pool.map(Plan, range(len(settings)), settings))
        for plan in plans:
            if not ok(plan.fine, f"ranks train with {' '.join(plan.settings)}", *plan.facts):
                return
        kinds = [SIGNALS[i % len(SIGNALS)] for i in range(TRIES)]
        picked = [rng.choice(plans) for _ in range(TRIES)]
        counts, longest = collections.Counter(), collections.defaultdict(float)
        tries = [pool.submit(one_try, *arguments) for arguments in zip(range(TRIES), kinds, picked)]
        for each in concurrent.futures.as_completed(tries):
            kind, met, seconds, name, facts = each.result()
            ok(not met.startswith("not "), name, *facts)
            counts[kind, met] += 1
            longest[kind, met] = max(longest[kind, met], seconds or 0)
    for key in sorted(counts):
        bound = f", bound {BOUNDS[key[1]]:g} s" if key[1] in BOUNDS else ""
        print(f"# {mpi} {key[0]}: {counts[key]} {key[1]}, {longest[key]:.1f} s at most{bound}")


main()
sys.exit(done())
