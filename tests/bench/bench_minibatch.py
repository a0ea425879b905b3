#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares epochs of minibatches of Graft with PyTorch Geometric and DGL: the same data, model, fan-outs and threads.

Each system runs in its own process, and the processes alternate. The table has the median time of an epoch without its
evaluation. The first epoch of each process is not counted. With --seeds the table also has the mean and the standard
deviation of the test accuracy after the epoch with the best validation accuracy. Evaluations aggregate over all
neighbours. Systems that are not installed are reported.
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


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="a folder of .npy files")
    parser.add_argument("--model", choices=["sage", "gat"], default="sage", help="default: %(default)s")
    parser.add_argument("--hidden", type=int, default=256, metavar="N", help="default: %(default)s")
    parser.add_argument("--fanout", default="5,10,15", metavar="LIST",
                        help="of each layer, the first one reads the features (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1000, metavar="N", help="default: %(default)s")
    parser.add_argument("--epochs", type=int, default=6, metavar="N", help="that are timed (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="that are evaluated (default: none)")
    parser.add_argument("--learn", type=int, default=20, metavar="N",
                        help="epochs of those that are evaluated (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="default: all processors")
    parser.add_argument("--cpu", action="store_true",
                        help="seconds of the processor of one thread, for a machine that has other work")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--python-pyg", default=sys.executable, metavar="PATH", help="the Python that has it")
    parser.add_argument("--python-dgl", default=sys.executable, metavar="PATH", help="the Python that has it")
    options = parser.parse_args()
    if options.epochs < 3:
        parser.error("--epochs must be 3 at least: the first and the last one of Graft are not counted")
    options.threads = 1 if options.cpu else options.threads
    return options


def run_graft(options, epochs, seed, is_evaluated, settings):
    """Train with graft-train, and return its times and accuracies. The last epoch always evaluates, so its time is not
    returned."""
    before = os.times()
    layers = options.fanout.count(",") + 1
    with tempfile.TemporaryDirectory() as folder:
        told = os.path.join(folder, "told.json")
        command = [os.path.join(options.build, "graft-train"), options.dataset, "--json", told, "--set",
                   f"model={options.model}", f"layers={layers}", f"hidden={options.hidden}", f"epochs={epochs}",
                   f"threads={options.threads}", f"eval_every={int(is_evaluated)}", f"seed={seed}", "lr=0.01",
                   "dropout=0.5", *settings]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except FileNotFoundError:
            sys.exit(f"bench_minibatch.py: there is no {command[0]}; build Graft first, or name its build with --build")
        except subprocess.CalledProcessError as error:
            return {"failed": error.stderr.strip()}
        with open(told, encoding="utf-8") as file:
            report = json.load(file)
    after = os.times()
    return {"version": "graft " + report["version"], "cpu": after[2] + after[3] - before[2] - before[3],
            "seconds": [one["seconds"] for one in report["history"][:-1]],
            "accuracies": [[report["val_accuracy"], report["test_accuracy"]]]}


def time_graft(options, epochs, seed, is_evaluated, settings):
    """Like run_graft(). With --cpu, the processor time of an epoch is computed from the difference between a run of all
    epochs and a run of two epochs."""
    whole = run_graft(options, epochs, seed, is_evaluated, settings)
    if options.cpu and not is_evaluated and "failed" not in whole:
        begun = run_graft(options, 2, seed, is_evaluated, settings)
        whole["seconds"] = [0, (whole["cpu"] - begun["cpu"]) / (epochs - 2)]
    return whole


def run_peer(options, system, epochs, seed, is_evaluated):
    command = [getattr(options, "python_" + system), os.path.join(HERE, "minibatch_worker.py"), system,
               options.dataset, options.model, str(options.hidden), options.fanout, str(options.batch), str(epochs),
               str(options.threads), str(seed), str(int(is_evaluated)),
               "process_time" if options.cpu else "perf_counter"]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), DGLBACKEND="pytorch",
                       PYTHONDONTWRITEBYTECODE="1")
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                            check=False)
    if result.returncode != 0 or not result.stdout:
        return {"failed": (result.stderr.strip().splitlines() or ["it said nothing"])[-1]}
    return json.loads(result.stdout)


def measure(options, systems):
    """Returns for each system the seconds, the best test accuracies, and the answer of its last process. The answer of
    a system that failed has the reason."""
    seconds, tests, told = {}, {}, {}
    turns = [(options.epochs, 0, False)] * options.rounds
    turns += [(options.learn, seed, True) for seed in range(options.seeds)]
    for epochs, seed, is_evaluated in turns:
        for name, run in systems.items():
            if name in told and "failed" in told[name]:
                continue
            told[name] = run(epochs, seed, is_evaluated)
            if "failed" in told[name]:
                continue
            if is_evaluated:
                tests.setdefault(name, []).append(100 * max(told[name]["accuracies"], key=lambda pair: pair[0])[1])
            else:
                seconds.setdefault(name, []).extend(told[name]["seconds"][1:])
    return seconds, tests, told


def main():
    options = arguments()
    batches = [f"batch_size={options.batch}", f"fanout={options.fanout}"]
    systems = {
        "graft": lambda *how: time_graft(options, *how, batches),
        "graft, whole graph": lambda *how: time_graft(options, *how, []),
        "pyg": lambda *how: run_peer(options, "pyg", *how),
        "dgl": lambda *how: run_peer(options, "dgl", *how),
    }
    seconds, tests, told = measure(options, systems)
    print(f"{options.dataset}: {options.model}, hidden width {options.hidden}, fanout {options.fanout}, batches of "
          f"{options.batch}, {options.threads} threads; accuracy after {options.learn} epochs, {options.seeds} seeds\n")
    print(f"{'system':20}  {'epoch, s':>8}  {'s:graft':>7}  {'test accuracy, % (sd)':>21}")
    for name in systems:
        if "failed" in told[name]:
            print(f"{name:20}  {told[name]['failed']}")
            continue
        times = "       -        -"
        if name in seconds:
            median, ours = (statistics.median(seconds[one]) for one in (name, "graft"))
            times = f"{median:8.4f}  {median / ours:7.2f}"
        found = tests.get(name, [])
        spread = f"{statistics.mean(found):.2f} ({statistics.stdev(found):.2f})" if len(found) > 1 else "-"
        print(f"{name:20}  {times}  {spread:>21}")
    print("\n" + "; ".join(sorted({one["version"] for one in told.values() if "version" in one})))


if __name__ == "__main__":
    main()
