#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks hosts with timers for the process and for each thread, whose handlers run on the normal stack. Results must be
bitwise identical to those of a run without signals. test_signals.py TIMERS HOST BENCH-PLAN METIS GRB-PROGRAM DROP-IN
MODULE..., where METIS, GRB-PROGRAM and DROP-IN may be empty, and each MODULE is a dense module.
Foreign and generated code also runs under these signals: oneDNN, OpenBLAS (dense modules), the OpenMP library, METIS (a
child process, which has timers too), GraphBLAS alone and with the drop-in. libraries.py finds other versions of
GraphBLAS, which compile at run time."""
import os
import re
import subprocess
import sys
import tempfile

import tap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../graphblas"))
import libraries  # pylint: disable=wrong-import-position

timers, host, bench_plan, metis, grb_program, drop_in, *modules = sys.argv[1:]
MICROSECONDS = 1000
FEWER = int(os.environ.get("GRAFT_TEST_FEWER", "1"))
THREADS = (1, 4) if FEWER > 1 else (1, 2, 4)
SAGE = "model=sage layers=3 hidden=128 dropout=0.2 eval_every=2"
WORK = {
    "training": ["train", SAGE],
    "training in bfloat16": ["train", SAGE + " dense.type=bf16"],
    "minibatches": ["train", SAGE + " batch_size=1000 fanout=10,10,10"],
    "training that handlers cancel": ["cancel", SAGE],
    "inference on a mesh": ["mgn", "hidden=64 layers=4"],
}


class Signals:
    """Makes an environment that adds timers, and counts the signals."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "seen")

    def environment(self, preload, more):
        """Make the environment. Freed memory is overwritten, so that uses after free are found."""
        return dict(os.environ, LD_PRELOAD=":".join([timers, *preload]), MALLOC_PERTURB_="165",
                    GRAFT_TEST_SIGNALS=f"{MICROSECONDS} {self.path}", **more)

    def take(self):
        """The numbers of signals for processes and for threads since the last call."""
        if not os.path.exists(self.path):
            return 0, 0
        with open(self.path, encoding="ascii") as file:
            pairs = [tuple(map(int, line.split())) for line in file]
        os.remove(self.path)
        return tuple(map(sum, zip(*pairs)))


def run(command, environment=None):
    try:
        found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return None, "", "it hung"
    return found.returncode, found.stdout, found.stderr[-500:]


def check(name, signals, command, quiet, preload=(), bits=str.split, **more):
    """Run a command with signals, and compare its output with that of the same command without signals."""
    code, out, err = run(command, signals.environment(preload, more))
    seen = signals.take()
    tap.ok(code == 0 and quiet[0] == 0 and bits(out) == bits(quiet[1]) and min(seen) >= 20,
           f"{name}: bitwise identical ({seen[0]} and {seen[1]} signals)", code, out, err, "without signals:", *quiet)
    return out


def check_modules(signals):
    """Do all kinds of work with each dense module. Results must also not depend on the number of threads."""
    names = ["reference"] + [re.fullmatch(r".*graft_dense_(\w+)\.so", path).group(1) for path in modules]
    for work, (what, settings) in WORK.items():
        for module in names:
            if ("bf16" in settings) != (work == "training in bfloat16") or "bf16" in settings and module != "onednn":
                continue
            quiet = run([host, what.replace("cancel", "train"), f"{settings} dense.module={module} threads=2"])
            for threads in THREADS if module != "reference" else (2,):
                out = check(f"{work}, {module}, {threads} threads", signals,
                            [host, what, f"{settings} dense.module={module} threads={threads}"], quiet,
                            bits=lambda text: text.split()[:1])
                if what == "cancel":
                    cancelled = (out.split() + ["0"] * 3)[2]
                    tap.ok(int(cancelled) > 3, f"{cancelled} calls were cancelled")


def check_metis(signals):
    command = [bench_plan, "rmat:13:100000", "4", "metis", f"partition.program={metis}"]
    check("METIS as a child", signals, command, run(command), bits=lambda text: text.splitlines()[:1])


def check_graphblas(signals, path, name):
    def checksums(text):
        return [line.split()[::2] for line in text.splitlines()]

    for threads in THREADS:
        command = [grb_program, "rmat:12:60000", "64", "9", str(threads)]
        one = [path] if path else []
        quiet = run(command, dict(os.environ, LD_PRELOAD=":".join(one)))
        check(f"{name}, {threads} threads", signals, command, quiet, one, checksums)
        check(f"the drop-in with it, {threads} threads", signals, command, quiet, [drop_in] + one, checksums,
              GRAFT_GRB="work=0,columns=0")


def main():
    with tempfile.TemporaryDirectory(prefix="graft-signals-") as folder:
        signals = Signals(folder)
        check_modules(signals)
        if metis:
            check_metis(signals)
        if grb_program:
            check_graphblas(signals, None, "GraphBLAS")
            found, why = libraries.find()
            for path, _ in found:
                check_graphblas(signals, path, os.path.basename(path))
            if not found:
                tap.skip("GraphBLAS that compiles at run time", why)
    tap.done()


main()
