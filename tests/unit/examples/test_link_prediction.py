#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the program of examples/link-prediction from the command line: test_link_prediction.py LINK-PREDICTION. A
model that learns nothing would miss the expected rank. Prints TAP."""
import array
import math
import os
import re
import subprocess
import sys
import tempfile

from tap import done, ok

N, NEAR, TIMEOUT = 240, 4, 120
program = os.path.abspath(sys.argv[1])
scratch = tempfile.TemporaryDirectory(prefix="graft-link-")
folder = f"{scratch.name}/ring"


def write_npy(path, descr, shape, values):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        values.tofile(file)


def make_ring():
    """Make a ring of vertices, each with edges to those near it. The features determine the approximate position
    of a vertex."""
    edges = [(u, (u + d) % N) for u in range(N) for d in range(-NEAR, NEAR + 1) if d]
    places = [2 * math.pi * k * v / N for v in range(N) for k in (1, 2, 5, 11)]
    os.mkdir(folder)
    write_npy(f"{folder}/edges.npy", "<i4", (2, len(edges)), array.array("i", [e[i] for i in (0, 1) for e in edges]))
    write_npy(f"{folder}/features.npy", "<f4", (N, 8), array.array("f", [f(x) for x in places
                                                                         for f in (math.sin, math.cos)]))


def run(*args):
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)


def test_training(decoder):
    """Among 50 vertices that are no neighbours a guess has an expected MRR below 0.1."""
    texts = []
    for threads in (1, 3):
        result = run(folder, "--decoder", decoder, "--width", "16", "--others", "50", "--every", "20", "--set",
                     "hidden=16", "epochs=60", f"threads={threads}")
        texts.append(result.stdout)
    losses = [float(x) for x in re.findall(r"loss (\S+)", texts[0])]
    best = re.search(r"best epoch (\d+): test MRR (\S+)  hits@1 (\S+)  hits@3 (\S+)  hits@10 (\S+), among 50", texts[0])
    if not ok(result.returncode == 0 and best and len(losses) == 3, f"{decoder}: it trains", result.stderr, texts[0]):
        return
    mrr, *hits = (float(x) for x in best.groups()[1:])
    ok(losses[2] < losses[0] < 5, f"{decoder}: the loss falls", losses)
    ok(mrr > 0.5 and hits[0] <= hits[1] <= hits[2] and hits[2] > 0.9, f"{decoder}: it finds neighbours", texts[0])
    ok(texts[0] == texts[1], f"{decoder}: the same with three threads", *texts)


def refused(name, code, words, *args):
    result = run(*args)
    ok(result.returncode == code and result.stderr.startswith("link-prediction: ") and result.stderr.count("\n") == 1
       and words in result.stderr and result.stdout == "", f"refused: {name}", result.returncode, result.stderr)


make_ring()
for which in ("dot", "hadamard"):
    test_training(which)
refused("no data set", 2, "a data set is expected")
refused("an unknown decoder", 2, "dot or hadamard", folder, "--decoder", "mlp")
refused("an unknown argument", 2, "unknown argument --seed", folder, "--seed", "3")
refused("no number", 2, "--negatives needs a number from 1 to 1000", folder, "--negatives", "0")
refused("dropout", 2, "option dropout cannot be set", folder, "--set", "dropout=0.5")
refused("an option without value", 2, "expected KEY=VALUE", folder, "--set", "hidden")
refused("an unknown option", 1, "nothing", folder, "--set", "nothing=1")
refused("no such folder", 1, "nowhere", f"{scratch.name}/nowhere")
os.rename(f"{folder}/features.npy", f"{folder}/kept.npy")
refused("no features", 1, "has no features", folder)
done()
