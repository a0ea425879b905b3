#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""graft-train under a launcher: test_graft_train_ranks.py LAUNCHER N GRAFT-TRAIN. What N ranks come to is what one
process comes to; the first rank alone speaks, and errors are said once. Prints TAP."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
launcher, n_ranks = sys.argv[1:3]
del sys.argv[1:3]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "unit"))
from train_host import MODEL, N, TIMEOUT, base, data, n_edges, program, run  # noqa: E402
from tap import done, ok, skip  # noqa: E402

TRAINED = [*MODEL, "epochs=12", "dropout=0.3", "threads=1", "halo.timeout=30"]


def launch(*args):
    environment = dict(os.environ, LC_ALL="C")
    return subprocess.run([launcher, "-n", n_ranks, program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=TIMEOUT, env=environment)


def read(path, mode="r"):
    with open(path, mode) as file:
        return file.read()


def said(result):
    """Lines of the program itself; launchers have a word to say when a process fails."""
    return [line for line in result.stderr.splitlines()
            if line.startswith("graft-train: ") and not line.startswith("graft-train: warning: ")]


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
    ok(many.stdout.count("best epoch ") == 1 and many.stdout.count("peak memory") == 1 and said(many) == [],
       f"{partition}: one rank speaks", many.stdout, many.stderr)
    ok(sorted(os.listdir(out)) == ["many", "many.json", "many.npy", "one", "one.json", "one.npy"],
       f"{partition}: no temporary file is left", os.listdir(out))
    result = launch(data, *TRAINED, "epochs=14", f"partition={partition}", "--resume", f"{out}/many", "--json",
                    f"{out}/more.json")
    history = json.loads(read(f"{out}/more.json"))["history"] if result.returncode == 0 else []
    ok([entry["epoch"] for entry in history] == [13, 14], f"{partition}: ranks go on from a checkpoint", result.stderr)


def refused(name, result, code, *words):
    lines = said(result)
    fine = result.returncode == code and len(lines) == 1 and all(word in lines[0] for word in words)
    ok(fine, name, f"exit {result.returncode}, expected {code} with {words}", result.stderr)


def test_metis():
    """METIS is a program beside the library; the owners that it finds are kept, and found again."""
    if not os.path.exists(os.path.join(os.path.dirname(program), "graft-metis")):
        skip("metis", "there is no graft-metis")
        return
    test_training("metis")
    kept = f"partition.file={base}/owners"
    first = launch(data, *TRAINED, "partition=metis", kept, "--json", f"{base}/first.json")
    again = launch(data, *TRAINED, "metis.program=/none", "partition=metis", kept, "--json", f"{base}/again.json")
    if not ok(first.returncode == 0 and again.returncode == 0, "owners are kept in a file, and read from there",
              first.stderr, again.stderr):
        return
    counts = [[json.loads(read(f"{base}/{name}.json"))[key] for key in ("cut_edges", "halo_rows")]
              for name in ("first", "again")]
    ok(counts[0] == counts[1], "and are the same", counts)
    result = launch(data, *TRAINED, "partition=metis", "metis.program=/none")
    refused("metis that is not there is said once", result, 1, "/none")
    result = launch(data, *TRAINED, "partition=auto", "--explain")
    ok(result.returncode == 0 and "partition: auto, predicted for an epoch: block" in result.stdout,
       "auto says what it chose, and why", result.stdout, result.stderr)


def test_errors():
    refused("a data set that is not there is said once", launch(f"{base}/nowhere", *TRAINED), 1, "nowhere")
    refused("an option of a wrong value too", launch(data, "--set", "hidden=none"), 2, "hidden")
    refused("an option that ranks do not have", launch(data, *TRAINED, "symmetrize=yes"), 2, "symmetrize")
    refused("an output that cannot be written", launch(data, *TRAINED, "--json", f"{base}/no/r.json"), 1, "no/r.json")
    refused("no checkpoint", launch(data, *TRAINED, "--resume", f"{base}/none"), 1, "none")
    result = launch(data, "--set")
    ok(result.returncode != 0 and result.stderr.count("requires an argument") == 1, "wrong usage is said once",
       result.stderr)


test_training("given")
test_training("hash")
test_metis()
test_errors()
sys.exit(done())
