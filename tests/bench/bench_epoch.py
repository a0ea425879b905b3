#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a training step of Graft with PyTorch Geometric and DGL: the same data, model, options and threads.

Each system runs in its own process, and the processes alternate. The table has the median time of the steps of all
rounds, without the first step of each process, and the accuracy after the last step. Systems that are not installed are
reported.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# The variants of Graft: the defaults, runs without one or both of the exact optimisations, and a run with products of
# bfloat16, which round.
VARIANTS = {"graft": [], "graft, all rows": ["row_masks=no"],
            "graft, all rows, features aggregated anew": ["row_masks=no", "reuse_input=no"],
            "graft, products of bfloat16": ["dense.type=bf16"]}
# The variants that apply to each model. gat multiplies the features before it aggregates them, so that neither exact
# optimisation applies to it.
USED = {"sage": list(VARIANTS), "gcn": list(VARIANTS), "gat": ["graft", "graft, products of bfloat16"]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="a folder of .npy files, as examples/debian-archive/make_dataset.py makes it")
    parser.add_argument("--model", choices=list(USED), default="sage", help="default: %(default)s")
    parser.add_argument("--norm", choices=["none", "layer", "batch"], default="layer", help="default: %(default)s")
    parser.add_argument("--layers", type=int, default=3, metavar="N", help="default: %(default)s")
    parser.add_argument("--hidden", type=int, default=128, metavar="N", help="default: %(default)s")
    parser.add_argument("--epochs", type=int, default=60, metavar="N", help="of each process (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="default: all processors")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the one that has the peers")
    return parser.parse_args()


def run_graft(options, settings):
    """Returns the step times and the accuracy of graft-train. The last epoch is not counted because it also
    evaluates."""
    with tempfile.TemporaryDirectory() as folder:
        told = os.path.join(folder, "told.json")
        command = [os.path.join(options.build, "graft-train"), options.dataset, "--json", told, "--set",
                   f"model={options.model}", f"norm={options.norm}", f"layers={options.layers}",
                   f"hidden={options.hidden}", f"epochs={options.epochs}", f"threads={options.threads}",
                   "eval_every=0", *settings]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except FileNotFoundError:
            sys.exit(f"bench_epoch.py: there is no {command[0]}; build Graft first, or name its build with --build")
        except subprocess.CalledProcessError as error:
            return {"failed": error.stderr.strip()}
        with open(told) as file:
            report = json.load(file)
    return {"version": "graft " + report["version"], "test_accuracy": report["test_accuracy"],
            "steps": [epoch["seconds"] for epoch in report["history"][:-1]]}


def run_peer(options, system):
    command = [options.python, os.path.join(HERE, "epoch_worker.py"), system, options.dataset, options.model,
               options.norm, str(options.layers), str(options.hidden), str(options.epochs), str(options.threads)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), DGLBACKEND="pytorch")
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if result.returncode != 0 or not result.stdout:
        return {"failed": (result.stderr.strip().splitlines() or ["it said nothing"])[-1]}
    return json.loads(result.stdout)


def main():
    options = arguments()
    if options.epochs < 2:
        sys.exit("bench_epoch.py: --epochs must be 2 at least: the first step of each process is not counted")
    systems = {name: lambda settings=VARIANTS[name]: run_graft(options, settings) for name in USED[options.model]}
    systems["pyg"] = lambda: run_peer(options, "pyg")
    systems["dgl"] = lambda: run_peer(options, "dgl")
    steps, told = {}, {}
    for _ in range(options.rounds):
        for name, run in systems.items():
            if name in told and "failed" in told[name]:
                continue
            told[name] = run()
            steps.setdefault(name, []).extend(told[name].get("steps", [])[1:])
    print(f"{options.dataset}: {options.model}, norm {options.norm}, {options.layers} layers, "
          f"hidden width {options.hidden}, {options.threads} threads, {options.epochs} epochs, "
          f"{options.rounds} rounds\n")
    print(f"{'system':42}  {'step, s':>8}  {'s:graft':>7}  {'test accuracy':>13}")
    for name in systems:
        if "failed" in told[name]:
            print(f"{name:42}  {told[name]['failed']}")
            continue
        median = statistics.median(steps[name])
        ratio = f"{median / statistics.median(steps['graft']):.2f}" if steps["graft"] else "-"
        print(f"{name:42}  {median:8.4f}  {ratio:>7}  "
              f"{told[name]['test_accuracy']:13.4f}")
    print("\n" + "; ".join(sorted({one["version"] for one in told.values() if "version" in one})))


if __name__ == "__main__":
    main()
