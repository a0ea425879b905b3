#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the accuracy of gcn on the public splits of Cora and Citeseer, with the hyper-parameters of Kipf and Welling
(ICLR 2017, section 5.2).

Trains with seeds 0 .. N-1, and evaluates the weights of the epoch with the best validation accuracy. Prints a Markdown
table with the mean and the standard deviation of the test accuracy, and the accuracy in the paper (table 2). The paper
stops training when the validation loss has not decreased for 10 epochs. Here all 200 epochs run."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

KIPF_AND_WELLING = ["model=gcn", "layers=2", "hidden=16", "lr=0.01", "epochs=200", "dropout=0.5", "input_dropout=0.5",
                    "norm=none", "weight_decay=5e-4:first", "normalize_features=yes"]
PAPER = {"cora": 81.5, "citeseer": 70.3}


def accuracy(program, folder, seed):
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        sets = [word for value in KIPF_AND_WELLING + [f"seed={seed}"] for word in ("--set", value)]
        subprocess.run([program, folder, *sets, "--json", report], check=True, stdout=subprocess.DEVNULL)
        with open(report, encoding="utf-8") as stream:
            return 100 * json.load(stream)["test_accuracy"]


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the folder that holds the data sets cora and citeseer")
    parser.add_argument("--seeds", type=int, default=10, help="how many seeds (default: 10)")
    parser.add_argument("--program", default=os.path.join(root, "build", "graft-train"), help="path of graft-train")
    arguments = parser.parse_args()
    if arguments.seeds < 2:
        parser.error("a standard deviation needs two seeds at least")
    print("| data set | test accuracy | sd | lowest | highest | paper |\n|---|---|---|---|---|---|")
    for name, paper in PAPER.items():
        folder = os.path.join(arguments.folder, name)
        found = [accuracy(arguments.program, folder, seed) for seed in range(arguments.seeds)]
        print(f"| {name} | {statistics.mean(found):.2f} | {statistics.stdev(found):.2f} | {min(found):.1f} | "
              f"{max(found):.1f} | {paper} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
