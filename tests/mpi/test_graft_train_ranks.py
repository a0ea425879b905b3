#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks graft-train under mpiexec: test_graft_train_ranks.py LAUNCHER N GRAFT-TRAIN. The results of N ranks must
equal those of one process. Only the first rank prints, and each error is printed once. Prints TAP."""
import array
import glob
import json
import os
import random
import re
import subprocess
import sys

launcher, n_ranks = sys.argv[1:3]
del sys.argv[1:3]
from small_data import N, N_CLASSES, N_EACH, write_npy
from train_host import MODEL, TIMEOUT, base, data, n_edges, program, run
from tap import done, ok, skip

TRAINED = [*MODEL, "epochs=12", "dropout=0.3", "threads=1", "halo.timeout=30"]


def launch(*args):
    return launch_each(["-n", n_ranks, program, *args])


def launch_each(words):
    """Run graft-train with the launcher. Some launchers give the first rank a terminal from which nothing can be
    read."""
    environment = dict(os.environ, LC_ALL="C", TERM="xterm")
    return subprocess.run([launcher, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=TIMEOUT, env=environment)


# A rank of MPI that starts the program in a child process, which inherits the variables of the launcher.
PARENT = """
import ctypes, os, subprocess, sys
mpi = ctypes.CDLL(sys.argv[1])
mpi.MPI_Init(None, None)
print(f"exit {subprocess.run(sys.argv[2:]).returncode}\\n", end="", flush=True)  # a single write
mpi.MPI_Finalize()
"""


def read(path, mode="r"):
    with open(path, mode) as file:
        return file.read()


def said(result):
    """The lines that the program itself printed, because launchers also print lines when a process fails."""
    return [line for line in result.stderr.splitlines()
            if line.startswith("graft-train: ") and not line.startswith("graft-train: warning: ")]


def test_child_of_rank():
    name = "OMPI_COMM_WORLD" if "openmpi" in launcher else "PMI"
    library = "libmpi.so.40" if "openmpi" in launcher else "libmpich.so.12"
    one = [sys.executable, "-c", PARENT, library]
    alone = [*one, "env", f"{name}_SIZE=1", program, data, *TRAINED, "epochs=2"]
    if launch_each(["-n", "1", *one, "true"]).returncode != 0:
        skip("the child of a rank", f"Python cannot start MPI by {library}")
        return
    result = launch_each(["-n", n_ranks, *one, program, data, *TRAINED, "--json", f"{base}/child.json"])
    lines = said(result)
    ok(result.stdout.count("exit 1") == int(n_ranks) == len(lines) and not os.path.exists(f"{base}/child.json") and
       all(f"{name}_SIZE" in line and f"{name}_RANK" in line for line in lines),
       "the child of a rank says which variable to set, and MPI lives on", result.stdout, result.stderr)
    result = launch_each(["-n", n_ranks, *alone])
    ok(result.returncode == 0 and result.stdout.count("exit 0") == int(n_ranks),
       "with it the child trains as one process", result.stdout, result.stderr)


def test_training(partition):
    out = f"{base}/{partition}"
    os.mkdir(out)
    one = run(data, *TRAINED, "--json", f"{out}/one.json", "--predict", f"{out}/one.npy", "--save", f"{out}/one")
    many = launch(data, *TRAINED, f"partition={partition}", "--json", f"{out}/many.json", "--predict",
                  f"{out}/many.npy", "--save", f"{out}/many")
    if not ok(one.returncode == 0 and many.returncode == 0, f"{partition}: {n_ranks} ranks train", one.stderr,
              many.stdout, many.stderr):
        return
    first, second = json.loads(read(f"{out}/one.json")), json.loads(read(f"{out}/many.json"))
    apart = [abs(a["loss"] - b["loss"]) / a["loss"] for a, b in zip(first["history"], second["history"])]
    ok(len(apart) == 12 and max(apart) < 1e-4, f"{partition}: losses are those of one process", apart)
    ok(all(abs(first[key] - second[key]) < 0.02 for key in ("test_accuracy", "val_accuracy", "train_accuracy")),
       f"{partition}: and accuracies")
    ours, theirs = read(f"{out}/one.npy", "rb"), read(f"{out}/many.npy", "rb")
    differ = sum(a != b for a, b in zip(ours[-4 * N:], theirs[-4 * N:]))
    ok(len(ours) == len(theirs) and differ <= N // 100, f"{partition}: predictions are those of one process", differ)
    ok(second["ranks"] == int(n_ranks) and second["edges"] == n_edges and second["vertices"] == N and
       0 < second["halo_rows"] < second["cut_edges"] and
       0 < second["halo_bytes_per_epoch"] <= second["halo_bytes_if_post"] and second["wait_seconds"] >= 0 and
       second["overlap_fraction"] <= 1, f"{partition}: the report counts what was sent",
       {key: second.get(key) for key in ("ranks", "edges", "halo_rows", "cut_edges", "halo_bytes_per_epoch")})
    layers, waits = second["halo_bytes_by_layer"], second["wait_seconds_by_rank"]
    ok([entry["layer"] for entry in layers] == list(range(len(layers))) and
       sum(entry["forward"] + entry["backward"] for entry in layers) == second["halo_bytes_per_epoch"] and
       len(waits) == int(n_ranks) and waits[0] == second["wait_seconds"] and min(waits) >= 0,
       f"{partition}: by layer and direction, and how long each rank waited", layers, waits)
    pairs = second["halo_by_pair"]
    ok(sum(pair["bytes"] for pair in pairs) == second["halo_bytes_per_epoch"] and
       all(pair["from"] != pair["to"] and pair["rows"] > 0 and pair["sampled_rows"] == pair["rows_unquantized"] == 0
           for pair in pairs) and
       second["bits_histogram"] == {"32": sum(pair["rows"] for pair in pairs)} and second["staleness_max"] == 0,
       f"{partition}: and by pair, and by bits", pairs, second["bits_histogram"])
    ok("bytes of rows that each rank receives in a step" in second["explain"] and
       many.stdout.count("MB of rows per epoch") == 1, f"{partition}: and says so", many.stdout)
    lines = [line for line in many.stdout.splitlines() if line.startswith("epoch ")]
    ok(len(lines) == 12 and "\033" not in many.stdout and "\r" not in many.stdout.replace("\r\n", "\n"),
       f"{partition}: a line for each epoch, as in a file", many.stdout)
    ok(many.stdout.count("best epoch ") == 1 and many.stdout.count("peak memory") == 1 and said(many) == [],
       f"{partition}: one rank speaks", many.stdout, many.stderr)
    ok(sorted(os.listdir(out)) == ["many", "many.json", "many.npy", "one", "one.json", "one.npy"],
       f"{partition}: no temporary file is left", os.listdir(out))
    result = launch(data, *TRAINED, "epochs=14", f"partition={partition}", "--resume", f"{out}/many", "--json",
                    f"{out}/more.json")
    history = json.loads(read(f"{out}/more.json"))["history"] if result.returncode == 0 else []
    ok([entry["epoch"] for entry in history] == [13, 14], f"{partition}: ranks go on from a checkpoint", result.stderr)


def test_list():
    """The ranks predict a list of vertices with a saved model. The rows must be in the order of the list, as with
    one process."""
    model = ["--model", f"{base}/given/one/checkpoint.safetensors", "--vertices", f"{base}/list.npy"]
    write_npy(f"{base}/list.npy", "<i8", "q", (40,), [v * 71 % N for v in range(40)])
    for name, start in (("one", run), ("many", launch)):
        result = start(data, *model, "--predict", f"{base}/list.{name}", "--probabilities", f"{base}/likely.{name}")
        if not ok(result.returncode == 0, f"a list, {name}", result.stdout, result.stderr):
            return
    ours, theirs = ([array.array("f", read(f"{base}/likely.{name}", "rb")[128:]) for name in ("one", "many")])
    ok(read(f"{base}/list.one", "rb") == read(f"{base}/list.many", "rb") and len(ours) == len(theirs) == 40 * N_CLASSES
       and max(abs(a - b) for a, b in zip(ours, theirs)) < 1e-4, "a list over ranks is that of one process")
    write_npy(f"{base}/list.npy", "<i8", "q", (2,), [0, N])
    refused("a vertex that there is not", launch(data, *model, "--predict", f"{base}/never.npy"), 1,
            f"element 1 is vertex {N}")
    write_npy(f"{base}/list.npy", "<f4", "f", (2,), [0, 1])
    refused("a list of floats", launch(data, *model, "--predict", f"{base}/never.npy"), 1, "type '<f4'")
    os.mkdir(f"{base}/unlabelled")
    for name in ("edges.npy", "features.npy"):
        os.symlink(f"{data}/{name}", f"{base}/unlabelled/{name}")
    result = launch(f"{base}/unlabelled", "--resume", f"{base}/given/one", "--predict", f"{base}/unlabelled.npy")
    ok(result.returncode == 0 and os.path.getsize(f"{base}/unlabelled.npy") == 128 + 4 * N,
       "a graph without labels is predicted", result.stderr)


def make_directed(folder):
    """Make a data set with the same vertices, few training vertices, and edges in one direction only."""
    rng = random.Random(7)
    edges = sorted({(rng.randrange(N_EACH) * N_CLASSES + v % N_CLASSES, v) for v in range(N) for _ in range(2)})
    os.mkdir(folder)
    for name in ("features.npy", "labels.npy"):
        os.symlink(f"{data}/{name}", f"{folder}/{name}")
    write_npy(f"{folder}/edges.npy", "<i4", "i", (2, len(edges)), [e[0] for e in edges] + [e[1] for e in edges])
    write_npy(f"{folder}/split.npy", "|u1", "B", (N,), [1 if v % 31 < 1 else 2 + v % 2 for v in range(N)])


def test_prepared():
    directed, reports = f"{base}/directed", {}
    make_directed(directed)
    settings = [*TRAINED, "symmetrize=yes", "order=rcm", "partition=hash", "reuse_input=no"]
    for name, start, more in (("one", run, []), ("many", launch, []), ("all rows", launch, ["row_masks=no"])):
        result = start(directed, *settings, *more, "--json", f"{base}/{name}.json", "--predict", f"{base}/{name}.npy")
        if not ok(result.returncode == 0, f"symmetrize, order, {name}: it trains", result.stdout, result.stderr):
            return
        reports[name] = json.loads(read(f"{base}/{name}.json"))
    one, many, full = reports["one"], reports["many"], reports["all rows"]
    for name in ("many", "all rows"):
        apart = [abs(a["loss"] - b["loss"]) / a["loss"] for a, b in zip(one["history"], reports[name]["history"])]
        ok(len(apart) == 12 and max(apart) < 1e-4, f"symmetrize, order, {name}: losses are those of one process", apart)
        ours, theirs = read(f"{base}/one.npy", "rb"), read(f"{base}/{name}.npy", "rb")
        differ = sum(a != b for a, b in zip(ours[-4 * N:], theirs[-4 * N:]))
        ok(len(ours) == len(theirs) and differ <= N // 100, f"and predictions, of {name}", differ)
    ok(many["cut_edges"] == full["cut_edges"] and many["halo_rows"] == full["halo_rows"] and
       0 < many["halo_bytes_per_epoch"] < 0.7 * full["halo_bytes_per_epoch"], "few trained vertices need few rows",
       many["halo_bytes_per_epoch"], full["halo_bytes_per_epoch"])
    for shared in ("partition", "feature"):
        test_masked_maxima(directed, shared)


def test_masked_maxima(directed, shared):
    """If the row masks of maxima change the number of bytes in an epoch, nothing may say that they have no effect.
    Otherwise the warning and --explain must say so."""
    results = [launch(directed, *TRAINED, "aggregator=max", f"parallel={shared}", "epochs=2", f"row_masks={masks}",
                      "--explain", "--json", f"{base}/{masks}.json") for masks in ("yes", "no")]
    if not ok(all(result.returncode == 0 for result in results), f"maxima, parallel={shared}: it trains",
              results[0].stderr, results[1].stderr):
        return
    sent = [json.loads(read(f"{base}/{masks}.json"))["halo_bytes_per_epoch"] for masks in ("yes", "no")]
    said = ["option row_masks has no effect" in results[0].stdout,
            "option 'row_masks' is no, which has no effect" in results[1].stderr]
    ok(said == [sent[0] == sent[1]] * 2 and sent[0] <= sent[1] and (sent[0] == sent[1]) == (shared == "partition"),
       f"maxima, parallel={shared}: the warning about row_masks agrees with the bytes sent", said, sent)


def test_profile():
    """Each part of the time of an exchange must be counted once, and lie inside its phase in the trace."""
    result = launch(data, *TRAINED, "partition=hash", "--profile", f"{base}/profile.json")
    table = [line.split() for line in result.stdout.splitlines()]
    rows = [words for words in table if words[:1] in (["forward"], ["backward"], ["evaluation"])]
    names = [row[1] for row in rows]
    seconds, shares = [float(row[2]) for row in rows], [float(row[3].rstrip("%")) for row in rows]
    parts = ("pack", "local", "wait", "unpack")
    rest = [float(words[3].rstrip("%")) for words in table if words[:2] == ["no", "phase"]]
    whole = [i for i, name in enumerate(names) if name == "aggregate"]
    ok(result.returncode == 0 and len(whole) == 3 and
       all(sorted(names[i + 1:i + 5]) == sorted(parts) and
           abs(sum(seconds[i + 1:i + 5]) - seconds[i]) < 0.0005 for i in whole),
       "the parts of an exchange follow it in the table, and add up", result.stdout, result.stderr)
    phases = sum(share for name, share in zip(names, shares) if name not in parts)
    ok(len(rest) == 1 and abs(phases + rest[0] - 100) < 2, "and are counted once", result.stdout)
    events = [event for event in json.loads(read(f"{base}/profile.json")) if event["ph"] == "X" and event["tid"] == 1]
    last, inside = None, 0
    for event in events:
        if not event["args"]["part"]:
            last = event
        elif last["ts"] - 0.01 <= event["ts"] and event["ts"] + event["dur"] <= last["ts"] + last["dur"] + 0.01:
            inside += 1
    ok(inside == sum(event["name"] in parts for event in events) > 0, "parts are inside of their phases in the trace")
    ok(all(event["args"]["waited"] > 0 for event in events if event["name"] == "wait"), "to wait is to have waited")


def refused(name, result, code, *words):
    lines = said(result)
    fine = result.returncode == code and len(lines) == 1 and all(word in lines[0] for word in words)
    ok(fine, name, f"exit {result.returncode}, expected {code} with {words}", result.stderr)


def test_metis():
    """METIS is a program in the folder of the library. The owners that it computes are written to a file and read
    again."""
    if not os.path.exists(os.path.join(os.path.dirname(program), "graft-metis")):
        skip("metis", "there is no graft-metis")
        return
    test_training("metis")
    kept = f"partition.file={base}/owners"
    first = launch(data, *TRAINED, "partition=metis", kept, "--json", f"{base}/first.json")
    again = launch(data, *TRAINED, "partition.program=/none", "partition=metis", kept, "--json", f"{base}/again.json")
    if not ok(first.returncode == 0 and again.returncode == 0, "owners are kept in a file, and read from there",
              first.stderr, again.stderr):
        return
    counts = [[json.loads(read(f"{base}/{name}.json"))[key] for key in ("cut_edges", "halo_rows")]
              for name in ("first", "again")]
    ok(counts[0] == counts[1], "and are the same", counts)
    result = launch(data, *TRAINED, "partition=metis", "partition.program=/none")
    refused("metis that is not there is said once", result, 1, "/none")
    result = launch(data, *TRAINED, "partition=auto", "--explain")
    ok(result.returncode == 0 and "partition: auto, predicted for an epoch: block" in result.stdout,
       "auto says what it chose, and why", result.stdout, result.stderr)


def test_one_rank():
    """If one rank fails before it has joined the others, they must not wait for it."""
    def spoiled(*args):
        many = str(int(n_ranks) - 1)
        return launch_each(["-n", "1", program, data, *TRAINED, ":", "-n", many, program, data, *TRAINED, *args])

    refused("an option that there is not, on one rank", spoiled("epoch=2"), 2, "rank 1: ", "'epoch'")
    refused("a kernel that there is not", spoiled("--kernel", "nothing"), 2, "rank 1: ", "'nothing'")
    refused("usage that is wrong", spoiled("--nothing"), 2, "rank 1: ", "'--nothing'")
    refused("two data sets", spoiled("--verbose", data), 2, "rank 1: ", "one DATASET")
    for name in ("predict", "save", "resume"):
        refused(f"--{name} on one rank only", spoiled(f"--{name}", f"{base}/alone"), 2,
                f"--{name} is not given on rank 0 and '{base}/alone' on rank 1")
    result = launch_each(["-n", "1", program, data, *TRAINED, ":", "-n", "1", program, base, *TRAINED])
    refused("another data set on one rank", result, 2, f"DATASET is '{data}' on rank 0 and '{base}' on rank 1")
    ok(not glob.glob(f"{base}/alone*"), "nothing is written then")
    result = launch_each(["-n", n_ranks, "env", "GRAFT_LIBRARY=/none", program, data, *TRAINED])
    # The launcher ends the other ranks when the first one has ended, so some may not have printed anything.
    speakers = [line.split(": ")[1] for line in said(result)]
    ok(result.returncode == 1 and speakers and len(speakers) == len(set(speakers)) and
       set(speakers) <= {f"rank {rank}" for rank in range(int(n_ranks))},
       "without a library, those that speak say who they are", result.stderr)


def test_few_bits():
    out = f"{base}/few.json"
    result = launch(data, *TRAINED, "partition=hash", "halo.codec=q8", "halo.error_statistics=exact", "--json", out)
    report = json.loads(read(out)) if result.returncode == 0 else {}
    ok(0 < report.get("quant_nmse", 0) < 1e-3 and report["quant_nmse"] < 1.5 * report["quant_nmse_expected"],
       "with 8 bits the report has a small quantization error", result.stderr, report.get("quant_nmse"))
    pairs = report.get("halo_by_pair", [])
    looked = sum(pair["sampled_rows"] for pair in pairs)
    lost = sum(pair["sampled_rows"] * pair["nmse"] for pair in pairs if pair["sampled_rows"]) / max(looked, 1)
    ok(looked > 0 and abs(lost / report["quant_nmse"] - 1) < 1e-6 and
       report["bits_histogram"] == {"8": sum(pair["rows"] for pair in pairs)}, "by pair of ranks too", lost, looked)
    worst = max((pair for pair in pairs if pair["sampled_rows"] and pair["layer"] == 1 and pair["pass"] == "backward"),
                key=lambda pair: pair["nmse"], default={})
    table = [line.split() for line in result.stdout.splitlines() if line.startswith("  1  backward")]
    ok(len(table) == 1 and "S^2/6" in table[0] and
       table[0][-4:] == ["from", str(worst["from"]), "to", str(worst["to"])],
       "and in a table, with the pair of the largest error", result.stdout, worst)


def test_batches():
    many = launch(data, *TRAINED, "batch_size=4", "fanout=4", "hec.rows=1000000:9", "--json", f"{base}/batches.json")
    if not ok(many.returncode == 0, f"{n_ranks} ranks train by minibatch", many.stdout, many.stderr):
        return
    report = json.loads(read(f"{base}/batches.json"))
    losses = [epoch["loss"] for epoch in report["history"]]
    caches, each = report["caches"], report["caches_by_rank"]
    ok(losses[-1] < 0.9 * losses[0], "losses fall", losses)
    ok(caches[0]["found"] == caches[0]["searched"] > 0 and caches[0]["bytes_sent"] > 0 and
       all(0 < cache["found"] < cache["searched"] and 1 <= cache["age"] <= 9 and cache["bytes_sent"] > 0
           for cache in caches[1:]) and [cache["layer"] for cache in caches] == list(range(len(caches))),
       "caches have all features, and find some rows of later layers", caches)
    ok(all(sum(cache[key] for cache in each if cache["layer"] == whole["layer"]) == whole[key]
           for whole in caches for key in ("searched", "found", "stored", "rows_sent")),
       "numbers of all ranks are the sums of those of each")
    ok(all(whole["stored"] <= whole["rows_sent"] for whole in caches), "no row is stored that was not sent")
    ok("were there (mean age" in many.stdout, "a line for each is printed", many.stdout)
    sent = re.search(r"^messages +([\d.]+) MB of features and of rows for batches, in all epochs; waited", many.stdout,
                     re.MULTILINE)
    ok(sent and abs(float(sent[1]) - 1e-6 * sum(cache["bytes_sent"] for cache in caches)) < 0.001,
       "and the bytes of all", many.stdout)
    edges = re.search(r"had (\d+) edges on a rank in the mean, the largest rank (\d\.\d\d) times", report["explain"])
    told = launch(data, *TRAINED, "batch_size=4", "fanout=4", "epochs=1", "parallel=auto", "--explain")
    ok(told.returncode == 0 and "auto shares rows, because a batch" in told.stdout and
       "products belong to evaluations" in told.stdout and "in a step, by layer" not in told.stdout and
       "cache     layer" in told.stdout and ": 0 rows of" not in told.stdout,
       "it says why parallel=auto shares rows, what products are for, and how large caches are",
       told.stdout, told.stderr)
    ok(edges and int(edges[1]) > 0 and 1 <= float(edges[2]) <= int(n_ranks), "explain() says how uneven batches were",
       report["explain"])


def test_fetched():
    many = launch(data, *TRAINED, "batch_size=4", "fanout=4", "aep.rows=3", "hec.miss=fetch", "--json",
                  f"{base}/fetched.json")
    if not ok(many.returncode == 0, f"{n_ranks} ranks train by minibatch with fetched rows", many.stdout, many.stderr):
        return
    report = json.loads(read(f"{base}/fetched.json"))
    caches = report["caches"][1:]
    ok(len(caches) > 0 and
       all(cache["rows_fetched"] == cache["searched"] - cache["found"] > 0 and
           cache["bytes_fetched"] == 8 * cache["width"] * cache["rows_fetched"] for cache in caches),
       "rows that caches do not have are fetched, and their gradients sent back", caches)
    ok("came from their owners" in many.stdout and "came from their owners" in report["explain"],
       "which is printed and explained", many.stdout, report["explain"])

    alone = launch(data, *TRAINED, "batch_size=4", "fanout=4", "aep.rows=0", "hec.miss=fetch_keep", "--json",
                   f"{base}/fetched_alone.json")
    ok(alone.returncode == 0 and
       all(cache["rows_sent"] == 0 < cache["found"] < cache["searched"] and cache["stored"] > 0
           for cache in json.loads(read(f"{base}/fetched_alone.json"))["caches"][1:]),
       "with hec.miss=fetch_keep later batches find rows that were fetched", alone.stdout, alone.stderr)

    # Without stale rows nothing is lost when a run ends.
    fetched = [*TRAINED, "batch_size=4", "fanout=4", "aep.rows=0", "hec.miss=fetch"]
    last, again = f"{base}/fetched_last.json", f"{base}/fetched_again.json"
    results = [launch(data, *fetched, "epochs=4", "--json", last),
               launch(data, *fetched, "epochs=2", "--save", f"{base}/fetched"),
               launch(data, *fetched, "epochs=4", "--resume", f"{base}/fetched", "--json", again)]
    ok(all(result.returncode == 0 for result in results) and
       all(cache["found"] == cache["stored"] == 0 for cache in json.loads(read(last))["caches"][1:]),
       "without it they find none", *[result.stderr for result in results])
    ok([epoch["loss"] for epoch in json.loads(read(last))["history"][2:]] ==
       [epoch["loss"] for epoch in json.loads(read(again))["history"]],
       "with aep.rows=0 a resumed run has the same bits")


def test_caches_resumed():
    """Each rank saves its caches, and gets them back when the run is resumed."""
    settings = [*TRAINED, "layers=3", "batch_size=6", "fanout=4", "aep.rows=5:2", "hec.codec=q8"]
    whole, half = f"{base}/caches_whole.json", f"{base}/caches_half.json"
    folder = f"{base}/caches"
    results = [launch(data, *settings, "epochs=6", "--json", whole),
               launch(data, *settings, "epochs=3", "--save", folder),
               launch(data, *settings, "epochs=6", "--resume", folder, "--json", half)]
    losses = [[epoch["loss"] for epoch in json.loads(read(path))["history"]][-3:] for path in (whole, half)]
    ok(all(result.returncode == 0 for result in results) and len(os.listdir(folder)) == int(n_ranks) and
       losses[0] == losses[1] and "empty caches" not in results[2].stderr,
       "a resumed run has the caches of all ranks, and the same losses", os.listdir(folder), losses,
       *[result.stderr for result in results])
    os.makedirs(f"{base}/blocked/checkpoint.rank-1.safetensors")
    refused("a rank that cannot write its caches", launch(data, *settings, "epochs=1", "--save", f"{base}/blocked"), 1,
            "rank 1: ", "checkpoint.rank-1.safetensors")
    test_caches_lost(settings, folder, losses[0])


def test_caches_lost(settings, folder, losses):
    """A run that is resumed without caches must warn once, unless it does not use caches."""
    own, lost = f"{folder}/checkpoint.rank-1.safetensors", f"{base}/caches_lost.json"

    def resume(what, warning, *more, source=folder):
        result = launch(data, *settings, "epochs=6", *more, "--resume", source, "--json", lost)
        warnings = [line for line in result.stderr.splitlines() if "caches" in line]
        ok(result.returncode == 0 and len(warnings) == (warning != "") and all(warning in line for line in warnings) and
           (not warning or [epoch["loss"] for epoch in json.loads(read(lost))["history"]] != losses),
           f"{what}: {warnings}", result.stderr)

    older = read(own, "rb")
    resume("other codec", "state item 'caches.", "hec.codec=f32")
    resume("no caches", "", "aep.rows=0:2", "hec.miss=fetch")
    launch(data, *settings, "epochs=4", "--resume", folder, "--save", folder)
    with open(own, "wb") as file:
        file.write(older)
    resume("an older file", "with empty caches: rank 1: ")
    os.remove(own)
    resume("no file of a rank", f"with empty caches: rank 1: there is no file '{own}'")
    launch(data, *settings, "epochs=3", "aep.rows=0:2", "hec.miss=fetch", "--save", f"{base}/none")
    resume("a checkpoint without caches", "with empty caches: the checkpoint has none", source=f"{base}/none")
    resume("nor has the run", "", "aep.rows=0:2", "hec.miss=fetch", source=f"{base}/none")


def test_idle():
    """Options that have no effect together with the others must be reported once. Options that have an effect must
    not be reported."""
    idle = ["halo.budget=balance:0.5:5", "halo.rounding=nearest"]
    result = launch(data, *TRAINED, "halo.timeout=60", *idle)
    warned = [line for line in result.stderr.splitlines() if "no effect" in line]
    ok(result.returncode == 0 and len(warned) == len(idle) and
       all(any(f"'{key}' is {value}," in line for line in warned) for key, value in (i.split("=") for i in idle)),
       "options without effect are warned of", result.stderr)
    result = launch(data, *TRAINED, "halo.staleness=1:3:0.5", "halo.codec=adaptive/q1", *idle)
    ok(result.returncode == 0 and "no effect" not in result.stderr, "and others are not", result.stderr)


def test_async():
    out = f"{base}/async.json"
    result = launch(data, *TRAINED, "partition=hash", "halo.staleness=1", "halo.codec=q4", "--json", out)
    report = json.loads(read(out)) if result.returncode == 0 else {}
    ages = [layer[f"staleness_{way}"] for layer in report.get("halo_bytes_by_layer", [])
            for way in ("forward", "backward") if layer[way] > 0]
    ok(report.get("staleness_max") == 1 and ages and set(ages) == {1} and " stale " in result.stdout,
       "stale rows are an epoch old, and the report says so", result.stderr, ages)
    history = report.get("history", [])
    waited = [epoch["epoch"] for epoch in history if epoch.get("synchronous")]
    drifts = [epoch["epoch"] for epoch in history if epoch.get("drift", 0) > 0]
    ok(waited == [1] and report.get("epochs_synchronous") == 1 and drifts == list(range(3, len(history) + 1)) and
       result.stdout.count("  synchronous") == 1 and result.stdout.count("  drift ") == len(drifts),
       "synchronous epochs and drift are reported", result.stdout, waited, drifts)


def test_adaptive_bits():
    """With a budget of bytes two runs must be identical. Without one the ranks measure their network. A budget that
    cannot be kept is an error."""
    adaptive = [data, *TRAINED, "partition=hash", "halo.codec=adaptive", "halo.budget=balance:0.5:4"]
    losses = []
    for turn in range(2):
        out = f"{base}/adaptive{turn}.json"
        result = launch(*adaptive, "halo.budget=error:0.02", "--json", out)
        report = json.loads(read(out)) if result.returncode == 0 else {"history": []}
        losses.append([epoch["loss"] for epoch in report["history"]])
    ok(len(losses[0]) == 12 and losses[0] == losses[1], "adaptive bits within a limit are the same in two runs",
       result.stderr, losses)
    shares = [layer[key] for layer in report.get("halo_bytes_by_layer", []) for key in layer if "expected_error" in key]
    ok(shares and all(0 < share <= 0.02 for share in shares) and " share " in result.stdout,
       "what they are expected to lose is within it, and told", result.stdout, shares)
    labels = [*adaptive, "label_rate=0.5", "reuse_input=no"]
    result = launch(*labels, "halo.budget=bytes:1e9", "--json", out)
    most = json.loads(read(out))["halo_bytes_per_epoch"] if result.returncode == 0 else 0
    result = launch(*labels, f"halo.budget=bytes:{most * 7 // 10}", "--json", out)
    report = json.loads(read(out)) if result.returncode == 0 else {}
    ok(most / 2 < report.get("halo_bytes_per_epoch", 0) <= most * 7 // 10, "labels count for the limit of bytes",
       result.stderr, report.get("halo_bytes_per_epoch"), most)
    refused("bytes that are too few for rows and labels", launch(*labels, "halo.budget=bytes:9"), 2,
            "at most 9 bytes are allowed", "of rows whose bits are fixed")
    result = launch(*labels, "halo.codec=q2/adaptive", "halo.budget=bytes:9")
    refused("labels do not count where rows that go forward have fixed bits", result, 2, "at most 9 bytes are allowed")
    ok("are fixed" not in result.stderr, "and are not spoken of", result.stderr)
    result = launch(*adaptive, "halo.staleness=1")
    ok(result.returncode == 0, "ranks time their messages", result.stderr)
    refused("bytes that are too few", launch(*adaptive, "halo.budget=bytes:9"), 2, "halo.budget", "with 2 bits")


def shared_report(ranks, name, *settings):
    """Run a training in which every epoch computes all sums of all rows. The result is its report, which is empty if
    the run failed."""
    out = f"{base}/{name}.json"
    result = launch_each(["-n", str(ranks), program, data, *TRAINED, "row_masks=no", "reuse_input=no", *settings,
                          "--explain", "--json", out])
    report = json.loads(read(out)) if result.returncode == 0 else {}
    one = json.loads(read(f"{base}/given/one.json"))["history"]
    apart = [abs(a["loss"] - b["loss"]) / a["loss"] for a, b in zip(one, report.get("history", []))]
    ok(len(apart) == 12 and max(apart) < 1e-4, f"{name}: {ranks} ranks have the losses of one process", apart,
       result.stdout, result.stderr)
    return result.stdout, report


def bytes_by_pass(report):
    """The sent bytes as {(layer, pass): bytes}."""
    return {(entry["layer"], way): entry[way] for entry in report.get("halo_bytes_by_layer", [])
            for way in ("forward", "backward") if entry[way] > 0}


def says_shared(name, stdout, report, columns, edges):
    """Check that the program says that ranks share columns before the first epoch, and that it prints the sent bytes
    after the last one."""
    sent = report.get("halo_bytes_per_epoch", 0)
    ok(sent == sum(bytes_by_pass(report).values()) > 0 and "halo_bytes_if_post" not in report and
       f"messages        {1e-6 * sent:.3f} MB of shared columns per epoch" in stdout and
       re.search("^  layer +records +MB", stdout, re.MULTILINE) and "if all were raw" not in stdout,
       f"{name}: the report and the last lines count records of shared columns", stdout, sent)
    ok(f"\ncolumns   of sums are shared by {columns} ranks each" in stdout and
       re.search(rf"^edges     of other ranks are {edges}: [0-9.e-]+ MB; with feature.graph=", stdout, re.MULTILINE),
       f"{name}: it says who shares columns, and whether edges are held", stdout)


def test_shared_columns():
    """Check the bytes of a shared run. Each of two transposes of a sum of d columns over m ranks sends 4 n d (m-1) /
    m bytes (MixGCN, section 3.1.2). Layer 0 sums 8 features and has no gradient; layer 1 sums the 3 classes. Each
    edge of another rank is sent as a number of 4 bytes, and so is the length of each row."""
    m = int(n_ranks)
    sums = {(0, "forward"): 8 * N * 8 * (m - 1) // m, (1, "forward"): 8 * N * 3 * (m - 1) // m}
    sums[1, "backward"] = sums[1, "forward"]
    stdout, held = shared_report(m, "feature", "parallel=feature")
    says_shared("feature", stdout, held, m, "held")
    ok(bytes_by_pass(held) == sums, "feature: it sends what theory says", bytes_by_pass(held), sums)
    pairs = held.get("halo_by_pair", [])
    ok(len(pairs) == 3 * m * (m - 1) and sum(pair["bytes"] for pair in pairs) == sum(sums.values()) and
       held["halo_rows"] == 0 < held["cut_edges"] and
       held["bits_histogram"] == {"32": sum(pair["rows"] for pair in pairs)}, "feature: and by pair, without a halo",
       pairs)
    stdout, streamed = shared_report(m, "stream", "parallel=feature", "feature.graph=stream")
    says_shared("stream", stdout, streamed, m, "received in each sum")
    edges = 4 * (m - 1) * (n_edges + N)
    ok(bytes_by_pass(streamed) == {key: count + edges for key, count in sums.items()},
       "stream: the edges are counted beside it", bytes_by_pass(streamed), sums, edges)
    ok(streamed.get("edge_bytes_per_epoch") == 3 * edges and held.get("edge_bytes_per_epoch") == 0 and
       f" MB of shared columns per epoch, of which {3e-6 * edges:.3f} MB are edges; waited " in stdout,
       "stream: and their part is shown", streamed.get("edge_bytes_per_epoch"), 3 * edges, stdout)
    losses = [[epoch["loss"] for epoch in report.get("history", [])] for report in (held, streamed)]
    ok(losses[0] == losses[1] != [], "stream: losses have the same bits", losses)
    stdout, grid = shared_report(2 * m, "grid", "parallel=grid:2")
    says_shared("grid", stdout, grid, 2, "held")
    table = re.search(r"^rows of the next table have 1/2 of the columns.*\nrows that each rank receives.*\n.* plan MB\n"
                      rf"((?:\d.*\n){{{2 * m}}})all ", stdout, re.MULTILINE)
    ok(table and "rows of the next table" not in streamed.get("explain", ""),
       "grid: it says that rows between groups are slices", stdout)
    # Between groups each rank sends its slice of the boundary rows.
    sums = {key: (2 * N + grid.get("halo_rows", 0)) * 2 * (8 if key[0] == 0 else 3) for key in sums}
    ok(sums.keys() == bytes_by_pass(grid).keys() and grid["halo_rows"] > 0 and
       all(abs(bytes_by_pass(grid)[key] / sums[key] - 1) < 0.01 for key in sums),
       "grid: it sends slices of columns and boundary rows", bytes_by_pass(grid), sums)


def test_limit(ranks, names, *settings):
    """If no mode fits into the limit, the error must name the smallest limit that works."""
    wide = [data, *TRAINED, "hidden=3000", "epochs=1", *settings]
    result = launch_each(["-n", str(ranks), program, *wide, "memory.limit=1"])
    found = re.search(rf"with {names} a rank needs ([0-9.]+) MB at least, more than one of them may use; expected "
                      r"options? (.*)memory.limit=(\d+) or more", result.stderr)
    refused(f"{settings}: a limit that no mode fits is said once", result, 1, "a rank needs")
    if not ok(found and 0 <= int(found[3]) - float(found[1]) < 1.1, f"{settings}: with the limit that is needed",
              result.stderr):
        return
    asked = [word.rstrip(",") for word in found[2].split() if "=" in word]
    for less in range(2):
        limit = int(found[3]) - less
        result = launch_each(["-n", str(ranks), program, *wide, *asked, f"memory.limit={limit}"])
        ok((result.returncode == 0) == (less == 0), f"{settings}: with memory.limit={limit} it runs or does not",
           result.stdout, result.stderr)


def test_limits():
    test_limit(n_ranks, "parallel=feature", "parallel=feature", "feature.graph=replicate")
    test_limit(n_ranks, "parallel=feature", "parallel=feature", "feature.graph=stream")
    test_limit(2 * int(n_ranks), "parallel=grid", "parallel=grid:2")
    test_limit(n_ranks, "parallel=(?:partition|feature), which auto has chosen,", "parallel=auto")


def test_errors():
    refused("a data set that is not there is said once", launch(f"{base}/nowhere", *TRAINED), 1, "nowhere")
    refused("an option of a wrong value too", launch(data, "--set", "hidden=none"), 2, "hidden")
    refused("an output that cannot be written", launch(data, *TRAINED, "--json", f"{base}/no/r.json"), 1, "no/r.json")
    refused("no checkpoint", launch(data, *TRAINED, "--resume", f"{base}/none"), 1, "none")
    test_one_rank()
    result = launch(data, "--set")
    ok(result.returncode != 0 and result.stderr.count("requires an argument") == 1, "wrong usage is said once",
       result.stderr)


test_training("given")
test_training("hash")
test_metis()
test_list()
test_prepared()
test_profile()
test_few_bits()
test_batches()
test_fetched()
test_caches_resumed()
test_idle()
test_async()
test_adaptive_bits()
test_shared_columns()
test_limits()
test_errors()
test_child_of_rank()
sys.exit(done())
