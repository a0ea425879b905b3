#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks checkpoints of training by minibatch: test_graft_train_batches.py GRAFT-TRAIN. A run that is resumed, also in
the middle of an epoch, must be bitwise identical to one that was not interrupted. Prints TAP."""
import os
import re
import signal
import struct
import subprocess
import time

from model_file import pack, seal, unpack
from train_host import MODEL, TIMEOUT, base, data, differing_tensors, program, read_npy, read_safetensors, run
from tap import done, ok

FILE = "/checkpoint.safetensors"
HISTORY = [*MODEL, "layers=3", "batch_size=10", "history=full", "eval_every=100", "threads=1"]


def test_saved(name, *more):
    """Train three epochs, save, and train three more."""
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


def edit(source, name, without=None, **progress):
    """Copy a checkpoint with other numbers in the items progress.NAME, and without one of its items."""
    with open(source + FILE, "rb") as file:
        header, content = unpack(file.read())
    for key, number in progress.items():
        begin, end = header["progress." + key]["data_offsets"]
        content = content[:begin] + struct.pack("<q" if isinstance(number, int) else "<d", number) + content[end:]
    if without:
        begin, end = header.pop(without)["data_offsets"]
        content = content[:begin] + content[end:]
        for key, entry in header.items():
            if key != "__metadata__" and entry["data_offsets"][0] >= end:
                entry["data_offsets"] = [at - (end - begin) for at in entry["data_offsets"]]
    os.mkdir(f"{base}/{name}")
    with open(f"{base}/{name}{FILE}", "wb") as file:
        file.write(pack(seal(header, content), content))
    return f"{base}/{name}"


def test_some_tables(source):
    """Without one of its history tables a checkpoint can be resumed, and the tables are filled again."""
    result = run(data, *HISTORY, "epochs=4", "--resume", edit(source, "some", without="history.1.batches"))
    ok(result.returncode == 0 and
       result.stderr.count("tables will be filled again: there are 4 arrays of them, expected 5") == 1,
       "without one of the tables a warning says that they are filled again", result.stderr)


def interrupt(folder, settings, is_time, seconds=0):
    """Interrupt a run some time after the first line for which is_time() is true. The result is its standard error, or
    None if its exit status is wrong."""
    child = subprocess.Popen([program, data, *settings, "--save", folder], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    for line in child.stdout:
        if is_time(line):
            break
    time.sleep(seconds)
    child.send_signal(signal.SIGINT)
    errors = child.communicate(timeout=TIMEOUT)[1]
    return errors if child.returncode == 130 else None


def compare_resumed(folder, settings):
    steps = [run(data, *settings, "--save", f"{base}/unstopped"),
             run(data, *settings, "--resume", folder, "--save", folder)]
    differing = differing_tensors(f"{base}/unstopped{FILE}", folder + FILE)
    ok(all(step.returncode == 0 for step in steps) and not differing,
       "resumed, it gives the bits of a run that was not interrupted", differing, *[step.stderr for step in steps])
    return steps[1]


def test_interrupted():
    folder = f"{base}/interrupted"
    errors = interrupt(folder, [*HISTORY, "epochs=100000000"], lambda line: line.startswith("epoch 3/"))
    found = re.search(r"interrupted (after|in) epoch (\d+) of 100000000, (saved|after \d+ of \d+ batches, saved)",
                      errors or "")
    if ok(found, "an interrupted run is saved", errors):
        compare_resumed(folder, [*HISTORY, f"epochs={int(found.group(2)) + 3}"])


def test_first_epoch():
    """Interrupt a run in its first epoch. There may be no batch to save yet, so several moments are tried."""
    settings = ["--set", "model=sage", "layers=3", "hidden=200", "batch_size=1", "threads=1", "epochs=2"]
    for attempt in range(20):
        folder = f"{base}/first-{attempt}"
        errors = interrupt(folder, settings, lambda line: line.startswith("memory"), 0.01 * (attempt + 1))
        found = re.search(r"interrupted in epoch 1 of 2, (after [1-9]\d* of \d+ batches), saved", errors or "")
        if found or errors is None:
            break
    if not ok(found, "a run is interrupted in its first epoch, and saved", errors):
        return
    resumed = compare_resumed(folder, settings)
    ok(f"resumed from '{folder}' in epoch 1 of 2, {found.group(1)}\n" in resumed.stdout, "it says so",
       resumed.stdout)


def test_other_batches():
    """Resume checkpoints with other batches, or on the whole graph."""
    settings, saved = [data, *MODEL, "threads=1"], f"{base}/saved"
    run(*settings, "epochs=1", "batch_size=10", "--save", saved)
    n_batches = struct.unpack("<4q", read_safetensors(saved + FILE)[1]["progress.batches"][2])[0]
    middle = edit(saved, "middle", batch=4, batch_loss=40.0, batch_weight=40.0)
    unnamed = edit(middle, "unnamed", without="progress.batches")
    named, again = f"after 4 of {n_batches} batches", "epoch 2 begins again, on"
    whole = f"{again} the whole graph: the state is after 4 of"
    for source, more, place, warning in (
            (saved, "batch_size=20", "after epoch 1 of 3", None), (saved, "batch_size=0", "after epoch 1 of 3", None),
            (middle, "batch_size=10", f"in epoch 2 of 3, {named}", None),
            (middle, "batch_size=20", f"in epoch 2 of 3, {named}",
             f"{again} {(n_batches + 1) // 2} batches (batch_size=20, ranks: 1): the state is {named}"),
            (middle, "batch_size=0", f"in epoch 2 of 3, {named}", f"{whole} {n_batches} batches (batch_size=10"),
            (unnamed, "batch_size=10", f"in epoch 2 of 3, {named}", None),
            (unnamed, "batch_size=0", "in epoch 2 of 3, after 4 batches", f"{whole} batches,")):
        name, ends = os.path.basename(source), [f"{base}/{end}" for end in ("ends", "begun-again")]
        result = run(*settings, "epochs=3", more, "--resume", source, "--save", ends[0])
        run(*settings, "epochs=3", more, "--resume", saved, "--save", ends[1])
        same = not differing_tensors(ends[0] + FILE, ends[1] + FILE)
        ok(result.returncode == 0 and f"resumed from '{source}' {place}\n" in result.stdout and
           result.stderr.count("begins again") == result.stderr.count(warning or "begins again") == bool(warning) and
           same == (bool(warning) or source == saved),
           f"{name}, resumed with {more}: {'the epoch begins again' if warning else 'training goes on'}",
           result.stdout, result.stderr)


test_saved("f32", "hec.codec=f32")
test_saved("q8", "hec.codec=q8", "sampler=cluster:60", "partition.program=none")
test_some_tables(f"{base}/f32-half")
test_interrupted()
test_first_epoch()
test_other_batches()
done()
