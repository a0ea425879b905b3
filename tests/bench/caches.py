#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training by minibatch over ranks with caches of historical embeddings (DistGNN-MB) beside one process and the whole
graph: caches.py --help. Accuracy, epochs until it is within one point of that of one process, rows found by layer,
bytes, and bytes if every row had been fetched."""
import argparse
import os
import statistics
import sys

import accuracy

SETTINGS = ["", "hec.miss=drop_rescaled", "hec.miss=last", "aep.rows=200 halo.codec=q8 hec.codec=q8",
            "hec.life=2 aep.rows=2000"]
BATCHES = {"debian-archive": 1000, "dblp": 200, "tolokers": 1000}


def arguments(root):
    parser = argparse.ArgumentParser(prog="caches.py", description=__doc__)
    parser.add_argument("datasets", nargs="*", metavar="DATASET",
                        help="default: the Debian graph of the quickstart; dblp and tolokers of GRAFT_TEST_DATA")
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
    sent = sum(cache["bytes_sent"] for cache in caches) / len(reports[0]["history"])
    fetched = sum(cache["bytes_if_fetched"] for cache in caches) / len(reports[0]["history"])
    spread = statistics.stdev(found) if len(found) > 1 else 0
    print(f"| {name} | {statistics.mean(found):.2f} | {spread:.2f} | {epochs} | {hits} | " +
          (f"{sent / 1e6:.2f} | {fetched / sent:.1f}" if sent else " | ") +
          f" | {statistics.median(report['seconds_per_epoch'] for report in reports):.2f} |", flush=True)


def main():
    options = arguments(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    for dataset in options.datasets:
        name = os.path.basename(os.path.normpath(dataset))
        size = BATCHES.get(name, 1000)
        print(f"\n{name}, {options.ranks} ranks, batches of {size}, {options.seeds} seeds\n")
        print("| | test accuracy, % | sd | epochs to within 1 point | found, % | MB per epoch | times fewer than "
              "fetched | s per epoch |\n|---|---|---|---|---|---|---|---|", flush=True)

        def train(settings, alone):
            return [accuracy.train(options, dataset, settings, alone, seed) for seed in range(options.seeds)]

        one = train(f"batch_size={size}", True)
        whole = statistics.mean(100 * report["test_accuracy"] for report in one)
        line("one process", one, whole)
        for settings in options.compare:
            line(settings or "ranks", train(f"partition=metis batch_size={size // options.ranks} {settings}", False),
                 whole)


if __name__ == "__main__":
    sys.exit(main())
