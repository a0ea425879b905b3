#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the ways to distribute the work over ranks: by vertices, by feature columns, or by both. For each way it
measures the bytes sent in an epoch, the time, and the difference of the losses from those of one process: columns.py
[options] DATASET ...

Prints a Markdown table for each data set. With --losses the table has only the differences of the losses, for every
model and every way to distribute the work, and for one process with a different order of the vertices. Column "of
theory" is the volume divided by the theoretical volume. In theory, each sum of d columns over m ranks that share the
columns sends 8 n d (m-1)/m bytes (MixGCN, section 3.1.2). n is the number of vertices with neighbours, because messages
contain no other vertices."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

MODEL = ["model=sage", "layers=3", "hidden=128", "row_masks=no", "reuse_input=no", "threads=1", "eval_every=0"]
COMPARED = ["parallel=partition partition=stream", "parallel=partition partition=block halo.cover=post",
            "parallel=partition partition=hash halo.cover=post", "parallel=grid partition=stream",
            "parallel=feature partition=block", "parallel=feature partition=block halo.codec=q8"]
MODELS = ["model=sage", "model=sage aggregator=sum", "model=sage aggregator=max", "model=sage aggregator=min",
          "model=gcn", "model=gin", "model=sgc propagation=3", "model=appnp propagation=3"]
MODES = ["parallel=partition partition=stream", "parallel=partition partition=stream workers=sparse:1 threads=2",
         "parallel=feature partition=block", "parallel=feature partition=block workers=sparse:1 threads=2",
         "parallel=feature partition=block feature.graph=stream", "parallel=feature partition=block row_masks=yes",
         "parallel=grid partition=stream"]


def arguments(root):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", metavar="DATASET")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8], help="default: 2 4 8")
    parser.add_argument("--epochs", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="options of graft-train for all")
    parser.add_argument("--compare", nargs="+", metavar="'KEY=VALUE ...'", help="sets of options, not the usual ones")
    parser.add_argument("--losses", action="store_true", help="differences of losses of every model")
    parser.add_argument("--launcher", default=shutil.which("mpiexec.openmpi") or "mpiexec", help="default: %(default)s")
    parser.add_argument("--build", default=os.path.join(root, "build"), help="folder of graft-train")
    return parser.parse_args()


def train(options, dataset, settings, ranks):
    """Returns the report of one run."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none", UCX_LOG_LEVEL="fatal")
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        command = [options.launcher, "-n", str(ranks)] if ranks > 1 else []
        command += [os.path.join(options.build, "graft-train"), dataset, "--set", *MODEL, f"epochs={options.epochs}",
                    *options.set, *settings.split(), "--json", report]
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                stdin=subprocess.DEVNULL, env=environment)
        if result.returncode != 0:
            sys.exit(f"columns.py: {' '.join(command)}\n{result.stderr}")
        with open(report, encoding="utf-8") as stream:
            return json.load(stream)


def count_linked(dataset):
    """Returns the number of vertices that have an edge to another vertex."""
    edges = np.load(os.path.join(dataset, "edges.npy"), mmap_mode="r")
    return np.unique(edges[:, edges[0] != edges[1]]).size


def theory(report, n, ranks):
    """Returns the theoretical bytes that the transposes of an epoch send, for three layers of sage. Each layer sums
    over neighbours at the smaller of its input and output widths, in the forward and in the backward pass."""
    widths = [report["features"], 128, 128, report["classes"]]
    columns = sum(2 * min(before, after) for before, after in zip(widths, widths[1:]))
    if widths[0] < widths[1]:
        columns -= widths[0]  # layer 1 aggregates its input, whose gradient is not needed
    return 8 * n * columns * (ranks - 1) / ranks


def off(report, one):
    """Returns the largest relative difference between the losses of two runs."""
    return max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(report["history"], one["history"]))


def print_losses(options, dataset, ranks):
    modes = options.compare or MODES
    print(f"\n{os.path.basename(os.path.normpath(dataset))}, {ranks} ranks\n")
    print("| model | one process, `order=rcm` |", *(f" `{mode}` |" for mode in modes))
    print("|---" * (2 + len(modes)) + "|")
    for model in MODELS:
        one = train(options, dataset, model, 1)
        again = train(options, dataset, f"{model} order=rcm", 1)
        reports = [again, *(train(options, dataset, f"{model} {mode}", ranks) for mode in modes)]
        print(f"| `{model}` |", *(f"{off(report, one):.1e} |" for report in reports), flush=True)


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    options = arguments(root)
    for dataset in options.datasets:
        if options.losses:
            for ranks in options.ranks:
                print_losses(options, dataset, ranks)
            continue
        one, linked = train(options, dataset, "", 1), count_linked(dataset)
        name = os.path.basename(os.path.normpath(dataset))
        print(f"\n{name}, {one['vertices']} vertices, {linked} with neighbours\n")
        print("| ranks | options | MB in an epoch | of theory | largest difference of a loss | s per epoch |")
        print("|---|---|---|---|---|---|")
        for ranks in options.ranks:
            for settings in options.compare or COMPARED:
                report = train(options, dataset, settings, ranks)
                sent = report["halo_bytes_per_epoch"]
                whole = "parallel=feature" in settings and "codec" not in settings
                part = f"{sent / theory(report, linked, ranks):.4f}" if whole else ""
                print(f"| {ranks} | `{settings}` | {sent / 1e6:.1f} | {part} | {off(report, one):.1e} | "
                      f"{report['seconds_per_epoch']:.3f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
