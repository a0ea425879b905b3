#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what graft-train reports about memory, time and saved work against numbers that follow from the shapes of
model and data: test_graft_train_effort.py GRAFT-TRAIN. Prints TAP."""
import json
import os
import random
import re
import shutil

from small_data import N, N_CLASSES, N_FEATURES, write_npy
from train_host import MODEL, base, data, refused, run
from tap import done, ok, skip


def test_ledger():
    wide = ["--set", "model=sage", "layers=3", "hidden=512", "epochs=1"]
    result = run(data, *wide)
    ledger = re.search(r"^memory +([\d.]+) MB beside the data set: features ([\d.]+), graph ([\d.]+), "
                       r"weights ([\d.]+), optimiser ([\d.]+), activations ([\d.]+), masks ([\d.]+), "
                       r"gradients ([\d.]+), messages ([\d.]+)$", result.stdout, re.MULTILINE)
    if not ok(result.returncode == 0 and ledger, "the ledger is shown before training", result.stdout, result.stderr):
        return
    total, *parts = map(float, ledger.groups())
    # The activations are Z, H, mean and deviation of two hidden layers, the aggregated rows of three layers, and the
    # logits. All are floats. In addition there is a bit for each element of H.
    activations = 4 * N * (4 * 512 + 4 + N_FEATURES + 512 + N_CLASSES) * 1e-6
    ok(abs(total - sum(parts)) < 0.5 and abs(parts[4] - activations) < 0.1 and abs(parts[5] - N * 128e-6) < 0.1,
       "its parts are its sum, and activations can be computed by hand", ledger.group(0), activations)
    path = f"{base}/ledger.json"
    result = run(data, *wide, "--explain", "--json", path)
    rows = re.findall(r"^(\w[\w ]*\w) +(\d+\.\d)(?:  .*)?$", result.stdout, re.MULTILINE)
    table = {name: float(number) for name, number in rows}
    with open(path) as file:
        told = json.load(file)["memory_bytes"]
    ok(len(told) == 9 and all(abs(table.get(name, -1) - told[name] * 1e-6) < 0.06 for name in told) and
       abs(table["total"] - sum(told.values()) * 1e-6) < 0.06, "--explain and --json have it by purpose", table, told)
    measured = re.search(r"^peak memory +([\d.]+) MB, estimated ([\d.]+) MB$", result.stdout, re.MULTILINE)
    ok(measured and abs(float(measured.group(2)) - table["total"]) < 0.06 and float(measured.group(1)) > 1,
       "and the measured peak beside it", result.stdout)
    saved = 4 * N * 512 * 1e-6  # one of two Z of hidden layers is recomputed
    again = run(data, *wide, "recompute=yes")
    less = re.search(r"^memory .* activations ([\d.]+), ", again.stdout, re.MULTILINE)
    ok(less and abs(activations - saved - float(less.group(1))) < 0.1 and "\nrecompute " in again.stdout,
       "with recompute, hidden layers have one Z", again.stdout, again.stderr)
    ok(re.findall(r"^epoch .* loss \S+", again.stdout, re.MULTILINE) ==
       re.findall(r"^epoch .* loss \S+", result.stdout, re.MULTILINE) != [], "and the loss is the same", again.stdout)
    deep = [*wide, "layers=5"]
    needed = float(re.search(r"^memory +([\d.]+) MB", run(data, *deep).stdout, re.MULTILINE).group(1))
    limit = f"memory.limit={int(needed) - 1}"
    refused("a model that would fit with recompute is refused with that advice", run(data, *deep, limit), 1,
            "activations", "recompute=yes", limit.split("=")[0])
    ok(run(data, *deep, limit, "recompute=yes").returncode == 0, "and it does fit")
    refused("a model that needs more than it may use", run(data, *wide, "memory.limit=7"), 1, "memory.limit",
            "activations", "7.0 MB that may be used")


def test_peak():
    """The measured peak is the estimate plus the size of the program itself, which a small data set shows."""
    def peak(folder):
        result = run(folder, "--set", "model=sage", "layers=3", "hidden=256", "epochs=1", "--explain")
        measured = re.search(r"^peak memory +([\d.]+) MB, estimated ([\d.]+) MB$", result.stdout, re.MULTILINE)
        table = re.search(r"^total +([\d.]+)$", result.stdout, re.MULTILINE)
        ok(measured and table and measured.group(2) == table.group(1), "the estimate does not change with training",
           result.stdout, result.stderr)
        return map(float, measured.groups()) if measured else (0, 0)

    n, big = 60000, f"{base}/big"
    os.mkdir(big)
    write_npy(f"{big}/edges.npy", "<i4", "i", (2, n), [*range(n), *range(1, n), 0])
    write_npy(f"{big}/features.npy", "<f4", "f", (n, 4), [v % 5 for v in range(4 * n)])
    write_npy(f"{big}/labels.npy", "<i4", "i", (n,), [v % 3 for v in range(n)])
    write_npy(f"{big}/split.npy", "|u1", "B", (n,), [1 + v % 3 for v in range(n)])
    small, small_told = peak(data)
    large, told = peak(big)
    ok(told > 300 and abs(large - told - (small - small_told)) < 0.1 * told,
       "the measured peak is the estimate, within a tenth", small, small_told, large, told)
    shutil.rmtree(big)


def test_short_cuts():
    """Options that avoid work must be enabled by default, reported, and absent from the report when they are disabled.
    A symmetric graph must be recognised as symmetric in any order of its vertices."""
    few = 20  # training vertices, so few that a step does not need all 300 vertices
    scarce = f"{base}/scarce"
    shutil.copytree(data, scarce)
    write_npy(f"{scarce}/split.npy", "|u1", "B", f"({N},)", [1] * few + [3] * (N - few))
    short = ["--set", "model=sage", "layers=2", "hidden=16", "epochs=1"]
    on, off = run(scarce, *short, "order=rcm"), run(scarce, *short, "row_masks=no", "reuse_input=no")
    rows = re.search(r"^rows +a step needs (\d+) (\d+) of", on.stdout, re.MULTILINE)
    ok(rows and int(rows.group(2)) == few < int(rows.group(1)) <= N, "explain says how many rows a step needs",
       on.stdout, on.stderr)
    ok("features are aggregated once" in on.stdout and " symmetric" in on.stdout and "not symmetric" not in on.stdout,
       "features are aggregated once, and an order keeps the graph symmetric", on.stdout)
    ok(off.returncode == 0 and "a step needs" not in off.stdout and "aggregated once" not in off.stdout,
       "both can be switched off", off.stdout, off.stderr)


def test_dense_types():
    """Products of bfloat16 are used where the processor has them. A module without them uses floats, with one
    warning."""
    def epochs(*settings):
        result = run(data, *MODEL, "--set", "epochs=5", *settings)
        return result, [float(loss) for loss in re.findall(r"loss ([\d.]+)", result.stdout)]

    plain, losses = epochs("dense.module=cblas")
    if plain.returncode != 0:
        skip(4, "there is no module cblas")
        return
    made_do, same = epochs("dense.module=cblas", "dense.type=bf16")
    ok(same == losses and len(losses) >= 5 and made_do.stderr.count("done in float") == 1,
       "without bfloat16 it runs in float, and says so once", made_do.stderr, same, losses)
    refused("with option strict it is refused", run(data, "--set", "dense.module=cblas", "dense.type=bf16",
                                                    "strict=yes"), 1, "dense.type", "strict", "cblas")
    half, close = epochs("dense.type=bf16")
    if "products of bfloat16" not in half.stdout:
        ok("done in float" in half.stderr, "what cannot multiply bfloat16 says so", half.stdout, half.stderr)
        skip(1, "no module multiplies bfloat16 here")
        return
    ok(close != losses, "products of bfloat16 round", close)
    ok(all(abs(a - b) < 0.02 * b for a, b in zip(close, losses)), "but a little", close, losses)


def test_sparse_features():
    """Sparse features must remain sparse if few elements are set, must be converted to dense features on request, and
    must train the same model."""
    words, each = 400, 3
    bags = f"{base}/bags"
    shutil.copytree(data, bags)
    os.remove(f"{bags}/features.npy")
    rng = random.Random(9)
    rows = [sorted(rng.sample(range(words), each)) for v in range(N)]
    for name, descr, code, values in (("data", "<f4", "f", [rng.random() for _ in range(each * N)]),
                                      ("indices", "<i4", "i", [word for row in rows for word in row]),
                                      ("indptr", "<i8", "q", range(0, each * N + 1, each)),
                                      ("shape", "<i8", "q", [N, words])):
        write_npy(f"{bags}/features_csr_{name}.npy", descr, code, (len(values),), values)
    settings = [*MODEL, "--set", "epochs=3", "input_dropout=0.2", "normalize_features=yes"]
    losses = []
    for choice, word in (("auto", "multiplied as they are"), ("no", "made dense")):
        path = f"{base}/sparse-{choice}.json"
        result = run(bags, *settings, f"sparse_input={choice}", "--json", path)
        line = re.search(r"^features +sparse, 0\.75 % filled; (.*)$", result.stdout, re.MULTILINE)
        ok(result.returncode == 0 and line and line.group(1) == word, f"sparse_input={choice}: {word}", result.stdout,
           result.stderr)
        with open(path) as file:
            losses.append([epoch["loss"] for epoch in json.load(file)["history"]])
    ok(len(losses[0]) == 3 and all(abs(a - b) < 1e-4 for a, b in zip(*losses)), "both train the same model", losses)


def test_history():
    """Tables of history=full are reported in one process too."""
    settings = [*MODEL, "--set", "epochs=3", "batch_size=10"]
    path = f"{base}/history.json"
    result = run(data, *settings, "history=full", "--json", path)
    lines = re.findall(r"^cache .* of other batches were needed, [\d.]+ % were there .* (\d+) stored", result.stdout,
                       re.MULTILINE)
    with open(path) as file:
        report = json.load(file)
    caches = report.get("caches", [])
    ok(len(caches) == len(lines) > 0 and [int(line) for line in lines] == [cache["stored"] for cache in caches] and
       all(cache["found"] == cache["searched"] > 0 for cache in caches) and "caches_by_rank" not in report,
       "caches of one process are printed, and in the report", result.stdout, caches)
    path = f"{base}/no_history.json"
    result = run(data, *settings, "--json", path)
    with open(path) as file:
        ok("caches" not in json.load(file) and "\ncache " not in result.stdout, "without them there are none",
           result.stdout)


def test_batch_refusals():
    """Options that cannot be combined with minibatches must be refused with the reason."""
    refused("a batch of more than there is to train on", run(data, *MODEL, "--set", "batch_size=100000"), 2,
            "expected at most", "the number of training vertices")
    refused("and with history=full", run(data, *MODEL, "--set", "batch_size=100000", "history=full"), 2,
            "expected at most", "the number of vertices")
    refused("label_rate", run(data, *MODEL, "--set", "batch_size=10", "label_rate=0.5"), 2,
            "from all training vertices")
    refused("workers", run(data, *MODEL, "--set", "batch_size=10", "workers=sparse:1"), 2,
            "each batch has another one")


def test_profile():
    path, wide = f"{base}/trace.json", 512  # so wide that a second thread pays off
    result = run(data, "--set", "model=sage", "layers=2", f"hidden={wide}", "threads=2", "epochs=3", "eval_every=3",
                 "--profile", path)
    if not ok(result.returncode == 0, "training with --profile ends well", result.stderr):
        return
    with open(path) as file:
        events = json.load(file)
    rows = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    events = [e for e in events if e["ph"] != "M"]
    ok(rows == {1: "phases", 2: "thread 1", 3: "thread 2"} and {e["tid"] for e in events} == set(rows),
       "there is a row of phases, and one for each thread", rows)
    phases = [e for e in events if e["tid"] == 1]
    seen = {(e["args"]["epoch"], e["cat"], e["name"]) for e in phases}
    steps = {(epoch, "forward", name) for epoch in range(3) for name in ("update", "aggregate", "loss")}
    steps |= {(epoch, "backward", "rows") for epoch in range(3)}  # forward these passes are part of the products
    ok(steps <= seen and (0, "backward", "optimizer") in seen and (3, "evaluation", "update") in seen,
       "every phase of every epoch is in the trace", seen)
    ok(all(e["ph"] == "X" and e["dur"] >= 0 for e in events) and
       all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in zip(phases, phases[1:])),
       "its events are complete, and follow one another")
    outside = [e for e in events if e["tid"] > 1 and not any(
        p["ts"] - 1e-3 <= e["ts"] and e["ts"] + e["dur"] <= p["ts"] + p["dur"] + 1e-3 and
        (p["name"], p["cat"], p["args"]["layer"]) == (e["name"], e["cat"], e["args"]["layer"]) for p in phases)]
    ok(not outside, "what a thread did lies inside its phase", outside[:3])
    second = {(e["cat"], e["name"]) for e in events if e["tid"] == 3}
    ok({("forward", "update"), ("backward", "update"), ("evaluation", "update")} <= second,
       "the second thread takes part in products", second)
    # Operations of layer 1 with 300 vertices and 3 classes: products for the vertex and for its neighbours, which a
    # training step makes both.
    flops = sum(e["args"]["flops"] for e in events
                if e["name"] == "update" and e["cat"] == "evaluation" and e["args"]["layer"] == 1)
    ok(flops == 2 * 2 * N * wide * N_CLASSES, "floating-point operations are those of the products", flops)
    # Bytes of the sums over neighbours: for each edge a row and a column index, and the output.
    read = [e["args"]["bytes"] for e in phases if (e["name"], e["cat"]) == ("aggregate", "evaluation")]
    edges = int(re.search(r"vertices, (\d+) edges", result.stdout).group(1))
    ok(read and read[-1] == 4 * (edges * N_CLASSES + edges + N * N_CLASSES), "and bytes are those of the sums", read)
    ok(all(e["args"]["waited"] >= 0 for e in events if e["tid"] > 1) and
       re.search(r"^ +no phase +[\d.]+ +[\d.]+%$", result.stdout, re.MULTILINE), "what is in no phase is named",
       result.stdout)
    ok("GFLOP/s" in result.stdout and path in result.stdout, "the summary is printed", result.stdout)
    table = re.findall(r"^(\w+) +(\w+) +([\d.]+) +[\d.]+% +\S+ +\S+ +([\d.]+)%$", result.stdout, re.MULTILINE)
    optimizer = [float(balance) for _, phase, _, balance in table if phase == "optimizer"]
    ok(len(table) == len({(e["cat"], e["name"]) for e in phases}) and all(0 < float(row[3]) <= 100 for row in table) and
       optimizer and 25 < optimizer[0] <= 50, "and has the balance of every phase: half, where one thread works",
       result.stdout)
    for _, phase, _, balance in [row for row in table if row[:2] == ("backward", "update")]:
        mine = [e for e in events if (e["cat"], e["name"]) == ("backward", phase)]
        busy = sum(e["dur"] - e["args"]["waited"] for e in mine if e["tid"] > 1)
        ok(abs(float(balance) - 100 * busy / (2 * sum(e["dur"] for e in mine if e["tid"] == 1))) < 0.11,
           "which is the time that threads worked, of that of the phase", balance)


test_ledger()
test_peak()
test_short_cuts()
test_dense_types()
test_sparse_features()
test_history()
test_batch_refusals()
test_profile()
done()
