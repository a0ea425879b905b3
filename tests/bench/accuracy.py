#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much accuracy quantized messages cost, and how many bytes they save: accuracy.sh [--full] [options]
[DATASET ...].

The program trains on each data set with each set of options and with seeds 0 .. N-1. It prints a Markdown table for
each data set. The table has the mean and the standard deviation of the test accuracy, for the weights of the epoch with
the best validation accuracy. It also has the bytes that all ranks send in a step, and two reduction factors: relative
to 32 bits, and relative to 32 bits without partial sums (halo.cover=post)."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

MODEL = ["model=sage", "layers=3", "hidden=128", "dropout=0.5", "lr=0.01", "epochs=60", "partition=stream"]
# Each entry has the name of a run, its options, and whether the run is a single process.
COMPARED = [("one process", "", True), ("32 bits", "", False), ("8 bits", "halo.codec=q8", False),
            ("4 bits", "halo.codec=q4", False), ("2 bits", "halo.codec=q2", False),
            ("1 bit, minmax", "halo.codec=q1:minmax", False),
            ("1 bit, rotated where rows are wide", "halo.codec=q1", False),
            ("adaptive, as many bytes as 3 bits", "halo.codec=adaptive halo.budget=bytes:{bytes3}", False),
            ("2 bits, labels", "halo.codec=q2 label_rate=0.62", False),
            ("2 bits, asynchronous", "halo.codec=q2 halo.staleness=1", False),
            ("the same, not smoothed", "halo.codec=q2 halo.staleness=1:0:0", False),
            ("1 bit, asynchronous", "halo.codec=q1 halo.staleness=1", False),
            ("1 bit as in Sylvie: minmax, stochastic, not smoothed, every fifth epoch synchronous",
             "halo.codec=q1:minmax halo.rounding=stochastic halo.staleness=1:5:0", False)]
SETS, MORE_SETS = ["dblp"], ["facebook_pages", "amazon_photo", "acl_papers"]


def arguments(root):
    parser = argparse.ArgumentParser(prog="accuracy.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="DATASET",
                        help="default: the Debian graph of examples/quickstart.sh, and dblp of GRAFT_TEST_DATA")
    parser.add_argument("--full", action="store_true", help="three more data sets, 8 ranks, 5 seeds")
    parser.add_argument("--ranks", type=int, help="default: 4")
    parser.add_argument("--seeds", type=int, help="default: 3")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="options of graft-train for all")
    parser.add_argument("--compare", nargs="+", metavar="'KEY=VALUE ...'",
                        help="sets of options over ranks instead of the usual ones; after one process and 32 bits")
    parser.add_argument("--launcher", default=shutil.which("mpiexec.openmpi") or "mpiexec", help="default: %(default)s")
    parser.add_argument("--build", default=os.path.join(root, "build"), help="folder of graft-train")
    options = parser.parse_args()
    options.ranks = options.ranks or (8 if options.full else 4)
    options.seeds = options.seeds or (5 if options.full else 3)
    if options.seeds < 2:
        parser.error("a standard deviation needs two seeds at least")
    if not options.datasets:
        folder = os.environ.get("GRAFT_TEST_DATA", "")
        found = [os.path.join(options.build, "debian-archive")]
        found += [os.path.join(folder, name) for name in SETS + (MORE_SETS if options.full else [])]
        options.datasets = [path for path in found if os.path.isdir(path)]
        for path in found:
            if path not in options.datasets:
                print(f"accuracy.sh: {path} is not there, and is left out", file=sys.stderr)
    return options


def train(options, dataset, settings, alone, seed, traced=False):
    """Returns the report of one run. If a profile is requested, "trace" has its spans."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none", UCX_LOG_LEVEL="fatal")
    cores = len(os.sched_getaffinity(0))
    threads = cores if alone else max(1, cores // options.ranks)
    with tempfile.TemporaryDirectory() as scratch:
        report, trace = os.path.join(scratch, "report.json"), os.path.join(scratch, "trace.json")
        command = [] if alone else [options.launcher, "-n", str(options.ranks)]
        command += [os.path.join(options.build, "graft-train"), dataset, "--set", *MODEL, f"threads={threads}",
                    *options.set, *settings.split(), f"seed={seed}", "--json", report]
        command += ["--profile", trace] if traced else []
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                stdin=subprocess.DEVNULL, env=environment)
        if result.returncode != 0:
            sys.exit(f"accuracy.sh: {' '.join(command)}\n{result.stderr}")
        with open(report, encoding="utf-8") as stream:
            result = json.load(stream)
        if traced:
            with open(trace, encoding="utf-8") as stream:
                result["trace"] = json.load(stream)
        return result


def line(name, reports, whole, post):
    accuracies = [100 * report["test_accuracy"] for report in reports]
    sent = statistics.mean(report.get("halo_bytes_per_epoch", 0) for report in reports)
    rate = f"{sent / 1e6:.2f} | {whole / sent:.1f}; {post / sent:.1f}" if sent else " | "
    return (f"| {name} | {statistics.mean(accuracies):.2f} | {statistics.stdev(accuracies):.2f} | {rate} | "
            f"{statistics.median(report['seconds_per_epoch'] for report in reports):.3f} |")


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    options = arguments(root)
    compared = COMPARED if options.compare is None else COMPARED[:2] + [(text, text, False) for text in options.compare]
    for dataset in options.datasets:
        whole = post = 0
        print(f"\n{os.path.basename(os.path.normpath(dataset))}, {options.ranks} ranks, {options.seeds} seeds\n")
        print("| messages | test accuracy, % | sd | MB in a step | times fewer; than `post` | s per epoch |")
        print("|---|---|---|---|---|---|")
        for name, settings, alone in compared:
            settings = settings.replace("{bytes3}", str(whole * 3 // 32))
            reports = [train(options, dataset, settings, alone, seed) for seed in range(options.seeds)]
            whole = whole or reports[0].get("halo_bytes_per_epoch", 0)
            post = post or reports[0].get("halo_bytes_if_post", 0)
            print(line(name, reports, whole, post), flush=True)


if __name__ == "__main__":
    sys.exit(main())
