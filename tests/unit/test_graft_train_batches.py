#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of training by minibatch: test_graft_train_batches.py GRAFT-TRAIN. Runs that are resumed, also from the
middle of an epoch, have the bits of runs that are not. Prints TAP."""
import os
import re
import signal
import subprocess

from model_file import pack, seal, unpack
from train_host import MODEL, TIMEOUT, base, data, differing_tensors, program, read_npy, read_safetensors, run
from tap import done, ok

FILE = "/checkpoint.safetensors"
HISTORY = [*MODEL, "layers=3", "batch_size=10", "history=full", "eval_every=100", "threads=1"]


def test_saved(name, *more):
    """Three epochs, saved, and three more."""
    settings = [data, *HISTORY, *more]
    folder = {way: f"{base}/{name}-{way}" for way in ("straight", "half", "resumed")}
    steps = [run(*settings, "epochs=6", "--save", folder["straight"], "--predict", f"{base}/s.npy"),
             run(*settings, "epochs=3", "--save", folder["half"]),
             run(*settings, "epochs=6", "--resume", folder["half"], "--save", folder["resumed"],
                 "--predict", f"{base}/r.npy")]
    if not ok(all(step.returncode == 0 for step in steps), f"{more}: runs end well", [s.stderr for s in steps]):
        return
    tables = [key for key in read_safetensors(folder["half"] + FILE)[1] if key.startswith("history.")]
    ok(len(tables) == 5, "the tables are in the checkpoint", tables)
    differing = differing_tensors(folder["straight"] + FILE, folder["resumed"] + FILE)
    ok(not differing and read_npy(f"{base}/s.npy") == read_npy(f"{base}/r.npy"),
       "3 epochs, saved, and 3 more give the bits and predictions of 6", differing)


def test_some_tables(source):
    """A checkpoint without one of its tables: they are filled again."""
    with open(source + FILE, "rb") as file:
        header, content = unpack(file.read())
    begin, end = header.pop("history.1.batches")["data_offsets"]
    content = content[:begin] + content[end:]
    for name, entry in header.items():
        if name != "__metadata__" and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [at - (end - begin) for at in entry["data_offsets"]]
    os.mkdir(f"{base}/some")
    with open(f"{base}/some{FILE}", "wb") as file:
        file.write(pack(seal(header, content), content))
    result = run(data, *HISTORY, "epochs=4", "--resume", f"{base}/some")
    ok(result.returncode == 0 and
       result.stderr.count("tables will be filled again: there are 4 arrays of them, expected 5") == 1,
       "without one of the tables a warning says that they are filled again", result.stderr)


def test_interrupted():
    folder = f"{base}/interrupted"
    child = subprocess.Popen([program, data, *HISTORY, "epochs=100000000", "--save", folder], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    for line in child.stdout:
        if line.startswith("epoch 3/"):
            break
    child.send_signal(signal.SIGINT)
    errors = child.communicate(timeout=TIMEOUT)[1]
    found = re.search(r"interrupted at epoch (\d+), saved", errors)
    if not ok(child.returncode == 130 and found, "an interrupted run is saved", errors):
        return
    settings = [data, *HISTORY, f"epochs={int(found.group(1)) + 3}"]
    steps = [run(*settings, "--save", f"{base}/unstopped"), run(*settings, "--resume", folder, "--save", folder)]
    differing = differing_tensors(f"{base}/unstopped{FILE}", folder + FILE)
    ok(all(step.returncode == 0 for step in steps) and not differing,
       "resumed, it gives the bits of a run that was not interrupted", differing, *[step.stderr for step in steps])


test_saved("f32", "hec.codec=f32")
test_saved("q8", "hec.codec=q8", "sampler=cluster", "cluster.parts=60", "partition.program=none")
test_some_tables(f"{base}/f32-half")
test_interrupted()
done()
