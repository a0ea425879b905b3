#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares sparse and dense workers with the plain order, with and without RCM, as in Tables 4 and 5 of MixGCN.

    workers.py build/debian-archive DATASET ...

Prints a Markdown table. It has the number of stages, the ratio b/n of the bandwidth of the graph and its number of
vertices, the median seconds of a step in the plain order and with workers=sparse:1, the idle times of the sparse and
the dense workers, and whether the losses are equal. The steps of both modes alternate. A second table has the seconds
of the RCM order, and of METIS with two parts.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMON = ["layers=3", "hidden=128", "eval_every=0", "row_masks=no", "reuse_input=no", "threads=2"]


def train(options, dataset, settings):
    """Train once. Returns the seconds of the steps without the first and the last one, the losses, the seconds outside
    of epochs, and the line about workers of explain()."""
    with tempfile.TemporaryDirectory() as folder:
        told = os.path.join(folder, "told.json")
        command = [os.path.join(options.build, "graft-train"), dataset, "--json", told, "--set", *COMMON,
                   f"epochs={options.epochs}", *settings]
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"workers.py: {' '.join(command)}\n{result.stderr}")
        with open(told, encoding="utf-8") as stream:
            report = json.load(stream)
    history = report["history"]
    seconds = [epoch["seconds"] for epoch in history]
    line = next((text for text in report["explain"].splitlines() if text.startswith("workers ")), "")
    return seconds[1:-1], [epoch["loss"] for epoch in history], report["seconds_total"] - sum(seconds), line


def number(pattern, text):
    found = re.search(pattern, text)
    return found.group(1) if found else "-"


def print_costs(options):
    """Print the seconds of ordering the vertices with RCM, and of a partition in two parts with METIS."""
    print("\n| data set | RCM, s | METIS, s |\n|---|---|---|")
    for dataset in options.datasets:
        before = {order: statistics.median(train(options, dataset, [f"order={order}", "epochs=1"])[2] for _ in range(5))
                  for order in ("given", "rcm")}
        command = [os.path.join(options.build, "tests", "bench", "bench_plan"), dataset, "2", "metis",
                   f"partition.program={os.path.join(options.build, 'graft-metis')}"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        print(f"| {os.path.basename(os.path.normpath(dataset))} | {before['rcm'] - before['given']:.3f} | "
              f"{number('so the partition ([0-9.]+) s', said)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="folders of .npy files")
    parser.add_argument("--models", nargs="+", default=["sage", "gcn", "gin"], help="default: sage gcn gin")
    parser.add_argument("--orders", nargs="+", default=["given", "rcm"], help="default: given rcm")
    parser.add_argument("--stages", nargs="+", default=["0", "4", "16"], help="default: 0 4 16; 0: by the bandwidth")
    parser.add_argument("--epochs", type=int, default=12, help="of a turn (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: %(default)s)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="folder of graft-train")
    options = parser.parse_args()
    print("| data set | model | order | stages | b/n | plain, s | workers, s | speed-up | idle: sums, rest | equal |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for dataset in options.datasets:
        for model in options.models:
            for order in options.orders:
                ways = {"plain": ["workers=no"]}
                ways.update({stages: [f"workers=sparse:1:{stages}"] for stages in options.stages})
                seconds, losses, lines = {}, {}, {}
                for _ in range(options.rounds):
                    for way, settings in ways.items():
                        steps, losses[way], _, lines[way] = train(
                            options, dataset, [f"model={model}", f"order={order}", *settings])
                        seconds.setdefault(way, []).extend(steps)
                plain = statistics.median(seconds["plain"])
                for stages in options.stages:
                    piped = statistics.median(seconds[stages])
                    equal = "yes" if losses[stages] == losses["plain"] else "NO"
                    idle = [number(pattern, lines[stages]) for pattern in (r"idle (\d+) %", r"other threads (\d+) %")]
                    print(f"| {os.path.basename(os.path.normpath(dataset))} | {model} | {order} | "
                          f"{number('in ([0-9]+) stages', lines[stages])} | "
                          f"{number('bandwidth is ([0-9.]+)', lines[stages])} | {plain:.4f} | {piped:.4f} | "
                          f"{plain / piped:.2f} | {idle[0]} %, {idle[1]} % | {equal} |", flush=True)
    print_costs(options)


if __name__ == "__main__":
    main()
