#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares minibatch training over ranks with caches of historical embeddings (DistGNN-MB) with training in one
process. caches.py --help lists the options. The first table has the accuracy, the number of epochs until the accuracy
is within one point of the final accuracy of one process, the cache hit rate of each layer, the bytes sent, and the
factor by which fetching every row would increase them. The second table shows how the first rank spends the time of an
epoch."""
import argparse
import os
import re
import statistics
import sys

import accuracy

SETTINGS = ["", "hec.miss=drop_rescaled", "aep.rows=500 aep.codec=f32",
            "aep.rows=500 aep.codec=f32 hec.miss=drop_rescaled"]
BATCHES = {"debian-archive": 1000, "dblp": 200, "tolokers": 1000}
# For each column of the second table: the phases of the profile that it sums. Evaluations are excluded.
PHASES = {"sample": ["sample"], "gather": ["gather", "cache"], "aggregate": ["aggregate"],
          "update": ["update", "rows", "loss", "optimizer"], "push": ["push", "receive", "prepare", "fetch"],
          "reduce, with waiting": ["reduce"]}


def arguments(root):
    parser = argparse.ArgumentParser(prog="caches.py", description=__doc__)
    parser.add_argument("datasets", nargs="*", metavar="DATASET",
                        help="default: the Debian graph of the quickstart; dblp and tolokers of GRAFT_TEST_DATA")
    parser.add_argument("--batch", type=int, help="vertices of a batch of all ranks; default: 200 on dblp, else 1000")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="options of graft-train for all")
    parser.add_argument("--compare", nargs="+", default=SETTINGS, metavar="'KEY=VALUE ...'")
    parser.add_argument("--build", default=os.path.join(root, "build"), help="folder of graft-train")
    parser.add_argument("--launcher", default="mpiexec.openmpi", help="default: %(default)s")
    options = parser.parse_args()
    folder = os.environ.get("GRAFT_TEST_DATA", "")
    options.datasets = options.datasets or [path for path in
                                            [os.path.join(options.build, "debian-archive")] +
                                            [os.path.join(folder, name) for name in ("dblp", "tolokers")]
                                            if os.path.isdir(path)]
    options.set = ["model=sage", "layers=3", "hidden=256", "fanout=5,10,15", "epochs=20", "eval_every=1",
                   "symmetrize=yes", *options.set]
    return options


def epochs_until(report, wanted):
    for epoch in report["history"]:
        if (epoch.get("test_accuracy") or 0) >= wanted:
            return str(epoch["epoch"])
    return "-"


def line(name, reports, whole):
    found = [100 * report["test_accuracy"] for report in reports]
    wanted = (whole if whole is not None else statistics.mean(found)) / 100 - 0.01
    epochs = ", ".join(epochs_until(report, wanted) for report in reports)
    caches = reports[0].get("caches", [])
    hits = ", ".join(f"{100 * cache['found'] / max(1, cache['searched']):.0f}" for cache in caches)
    sent = sum(cache["bytes_sent"] + cache["bytes_fetched"] for cache in caches) / len(reports[0]["history"])
    fetched = sum(cache["bytes_if_fetched"] for cache in caches) / len(reports[0]["history"])
    spread = statistics.stdev(found) if len(found) > 1 else 0
    print(f"| {name} | {statistics.mean(found):.2f} | {spread:.2f} | {epochs} | {hits} | " +
          (f"{sent / 1e6:.2f} | {fetched / sent:.1f}" if sent else " | ") +
          f" | {statistics.median(report['seconds_per_epoch'] for report in reports):.2f} |", flush=True)


def shares(name, report):
    """Returns a line of the second table: the time share of each phase on the first rank, and the load imbalance of the
    edges in batches (largest rank / mean)."""
    seconds = {}
    for span in report["trace"]:
        # Thread 1 of the trace has the phases. A span whose "part" is not 0 is contained in a phase, so it is skipped.
        if span["ph"] == "X" and span["tid"] == 1 and span["cat"] != "evaluation" and not span["args"]["part"]:
            seconds[span["name"]] = seconds.get(span["name"], 0) + span["dur"]
    whole = sum(seconds.values())
    parts = [100 * sum(seconds.pop(phase, 0) for phase in phases) / whole for phases in PHASES.values()]
    uneven = re.search(r"the largest rank ([0-9.]+) times", report["explain"])
    parts.append(100 * sum(seconds.values()) / whole)
    return f"| {name} | " + " | ".join(f"{part:.1f}" for part in parts) + f" | {uneven.group(1) if uneven else ''} |"


def main():
    options = arguments(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    for dataset in options.datasets:
        name = os.path.basename(os.path.normpath(dataset))
        size = options.batch or BATCHES.get(name, 1000)
        print(f"\n{name}, {options.ranks} ranks, batches of {size}, {options.seeds} seeds\n")
        print("| | test accuracy, % | sd | epochs to within 1 point | found, % | MB per epoch | times fewer than "
              "fetched | s per epoch |\n|---|---|---|---|---|---|---|---|", flush=True)
        times = []

        def train(name, settings, alone, whole):
            reports = [accuracy.train(options, dataset, settings, alone, seed, traced=seed == 0)
                       for seed in range(options.seeds)]
            line(name, reports, whole)
            times.append(shares(name, reports[0]))
            return statistics.mean(100 * report["test_accuracy"] for report in reports)

        whole = train("one process", f"batch_size={size}", True, None)
        for settings in options.compare:
            train(settings or "ranks", f"partition=metis batch_size={size // options.ranks} {settings}", False, whole)
        print("\n| share of an epoch of the first rank, % | " + " | ".join(PHASES) +
              " | other | most edges / mean |\n|" + "---|" * (len(PHASES) + 3) + "\n" + "\n".join(times), flush=True)


if __name__ == "__main__":
    sys.exit(main())
