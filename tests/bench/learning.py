#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how fast Graft and PyTorch Geometric learn: the test accuracy after the first epochs, with equal options.

Both train the same model on the same data with each seed: LayerNorm, ReLU and dropout 0.5 between layers, and Adam with
learning rate 0.01. The first table has the mean and the standard deviation of the test accuracy over the seeds, in
percent. Accuracies are those of the current weights. They are plain accuracies, even for data sets whose authors prefer
another measure. The second table has the mean losses of the first epochs, which should begin near ln(classes).
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SETS = ["cora", "citeseer", "amazon_photo", "dblp", "facebook_pages", "tolokers", "acl_papers", "gnnre"]
N_LOSSES = 3


def numbers(text):
    return sorted({int(part) for part in text.split(",")})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="DATASET",
                        help="default: BUILD/debian-archive, and the sets in the folder $GRAFT_TEST_DATA")
    parser.add_argument("--models", nargs="+", default=["sage"], choices=["sage", "gcn", "gat", "gin"], metavar="MODEL",
                        help="sage, gcn, gat, gin (default: sage)")
    parser.add_argument("--layers", type=int, default=3, metavar="N", help="default: %(default)s")
    parser.add_argument("--hidden", type=int, default=128, metavar="N", help="default: %(default)s")
    parser.add_argument("--epochs", type=numbers, default="10,25,60", metavar="N,...", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="default: all processors")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the one that has torch_geometric")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("a standard deviation needs two seeds at least")
    if not options.datasets:
        found = [os.path.join(options.build, "debian-archive")]
        found += [os.path.join(os.environ.get("GRAFT_TEST_DATA", ""), name) for name in SETS]
        options.datasets = [path for path in found if os.path.isdir(path)]
    if not options.datasets:
        parser.error("no data set: name one, or a folder of them in GRAFT_TEST_DATA")
    return options


def run(command, options):
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if result.returncode != 0:
        sys.exit(f"learning.py: {' '.join(command)}\n{result.stderr}")
    return result.stdout


def train_graft(options, dataset, model, seed):
    """Returns the report of graft-train."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        run([os.path.join(options.build, "graft-train"), dataset, "--json", path, "--set", f"model={model}",
             f"layers={options.layers}", f"hidden={options.hidden}", f"epochs={options.epochs[-1]}", "lr=0.01",
             "dropout=0.5", f"eval_every={math.gcd(*options.epochs)}", f"seed={seed}",
             f"threads={options.threads}"], options)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def learn_graft(options, dataset, model):
    """Returns the losses and accuracies for each seed, the version of Graft, and the number of classes."""
    reports = [train_graft(options, dataset, model, seed) for seed in range(options.seeds)]
    runs = [{"losses": [epoch["loss"] for epoch in report["history"]],
             "accuracies": [report["history"][epoch - 1]["test_accuracy"] for epoch in options.epochs]}
            for report in reports]
    return runs, "graft " + reports[0]["version"], reports[0]["classes"]


def learn_pyg(options, dataset, model):
    command = [options.python, os.path.join(HERE, "learning_worker.py"), dataset, model, str(options.layers),
               str(options.hidden), str(options.threads), ",".join(map(str, options.epochs)),
               ",".join(map(str, range(options.seeds)))]
    answer = json.loads(run(command, options))
    if "failed" in answer:
        sys.exit(f"learning.py: PyTorch Geometric on {dataset}: {answer['failed']}")
    return answer["runs"], answer["version"]


def print_accuracies(options, name, sides):
    for i, epoch in enumerate(options.epochs):
        columns = [[100 * one["accuracies"][i] for one in runs] for runs in sides]
        means = [statistics.mean(column) for column in columns]
        cells = [f"{mean:.2f} ({statistics.stdev(column):.2f})" for mean, column in zip(means, columns)]
        print(f"| {name} | {epoch} | {cells[0]} | {cells[1]} | {means[0] - means[1]:+.2f} |", flush=True)


def first_losses(runs):
    return ", ".join(f"{statistics.mean(one['losses'][i] for one in runs):.2f}"
                     for i in range(min(N_LOSSES, len(runs[0]["losses"]))))


def main():
    options = arguments()
    losses, versions = [], set()
    print(f"{options.layers} layers, hidden width {options.hidden}, {options.seeds} seeds\n")
    print("| set | model | epochs | Graft, % (sd) | PyG, % (sd) | difference |")
    print("|---|---|---|---|---|---|", flush=True)
    for dataset in options.datasets:
        for model in options.models:
            name = f"{os.path.basename(os.path.normpath(dataset))} | {model}"
            graft, version, classes = learn_graft(options, dataset, model)
            pyg, peer_version = learn_pyg(options, dataset, model)
            versions |= {version, peer_version}
            print_accuracies(options, name, (graft, pyg))
            losses.append(f"| {name} | {math.log(classes):.2f} | {first_losses(graft)} | {first_losses(pyg)} |")
    print("\n| set | model | ln(classes) | first losses of Graft | of PyG |\n|---|---|---|---|---|")
    print("\n".join(losses))
    print("\n" + "; ".join(sorted(versions)))


if __name__ == "__main__":
    main()
