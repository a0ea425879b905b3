#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the sampler of Graft with those of PyTorch Geometric and DGL: the same graph, seeds, fan-outs and threads.

Each system runs in its own process, and the processes alternate. All systems must sample the same number of edges that
lead to seeds, and DGL the same number of edges in all layers within a percent. PyTorch Geometric samples the neighbours
of each vertex of a batch only once, so it has less work. The table has medians. Systems that are not installed are
reported. See README.md.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RECIPES = {"pyg": "pip install torch torch_geometric, and pip install --no-build-isolation torch_sparse",
           "dgl": "pip install dgl==1.1.3 torch 'setuptools<70' packaging, in an environment of its own"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("graph", help="rmat:SCALE:EDGES, uniform:N:EDGES or a data set")
    parser.add_argument("--fanout", default="5,10,15", metavar="LIST",
                        help="of each layer, the first one reads the features (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1000, metavar="N", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=100000, metavar="N",
                        help="of an epoch; at most all vertices (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=3, metavar="N",
                        help="of each process, after one to warm up (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="default: all processors")
    parser.add_argument("--cpu", action="store_true",
                        help="seconds of the processor of one thread, for a machine that has other work")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--python-pyg", default=sys.executable, metavar="PATH", help="the Python that has it")
    parser.add_argument("--python-dgl", default=sys.executable, metavar="PATH", help="the Python that has it")
    options = parser.parse_args()
    options.threads = 1 if options.cpu else options.threads
    return options


def program(options, name):
    path = os.path.join(options.build, "tests", "bench", name)
    if not os.access(path, os.X_OK):
        sys.exit(f"sampler.py: there is no {path}; build Graft first, or name its build with --build")
    return path


def run_graft(options):
    command = [program(options, "bench_sampler"), options.graph, str(options.batch), str(options.seeds),
               str(options.epochs), f"fanout={options.fanout}", f"threads={options.threads}"]
    command += ["clock=cpu"] * options.cpu
    environment = dict(os.environ, GRAFT_LIBRARY=os.path.join(options.build, "libgraft.so"))
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if result.returncode != 0:
        sys.exit(1)  # bench_sampler has printed the reason
    edges, first = map(int, re.search(r"(\d+) edges, (\d+) to seeds", result.stdout).groups())
    lines = {"graft": "sampler", "random reads alone": "reads"}
    return {"version": result.stdout.splitlines()[0], "lines": {
        name: {"seconds": [float(re.search(rf"{of} +([0-9.]+) s", result.stdout)[1])], "edges": edges,
               "first_edges": first} for name, of in lines.items()}}


def run_peer(options, system, folder):
    command = [getattr(options, "python_" + system), os.path.join(HERE, "sampler_worker.py"), system, folder,
               str(options.batch), str(options.seeds), options.fanout, str(options.threads), str(options.epochs),
               "process_time" if options.cpu else "perf_counter"]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), DGLBACKEND="pytorch",
                       PYTHONDONTWRITEBYTECODE="1")
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                            check=False)
    if result.returncode != 0 or not result.stdout:
        return {"failed": (result.stderr.strip().splitlines() or ["it said nothing"])[-1]}
    return json.loads(result.stdout)


def trouble_of(name, line, graft):
    """Returns a sentence about a wrong number of edges, or None."""
    if line["first_edges"] != graft["first_edges"]:
        return f"WRONG: {line['first_edges']} edges lead to seeds, and not {graft['first_edges']}"
    if name.startswith("dgl") and abs(line["edges"] - graft["edges"]) > 0.01 * graft["edges"]:
        return f"WRONG: {line['edges']} edges, and not {graft['edges']}"
    return None


def print_table(lines):
    graft = lines["graft"]
    wide, ours = max(map(len, lines)), statistics.median(graft["seconds"]) / graft["edges"]
    print(f"\n{'system':{wide}}  {'s an epoch':>10}  {'edges':>10}  {'million edges/s':>15}  {'graft:this':>10}")
    for name, line in lines.items():
        trouble = trouble_of(name, line, graft)
        if trouble is not None:
            print(f"{name:{wide}}  {trouble}")
            continue
        median = statistics.median(line["seconds"])
        print(f"{name:{wide}}  {median:10.4f}  {line['edges']:10}  {1e-6 * line['edges'] / median:15.2f}  "
              f"{median / line['edges'] / ours:10.2f}")


def main():
    options = parse_arguments()
    lines, versions, missing = {}, [], {}
    with tempfile.TemporaryDirectory(prefix="graft-sampler-") as folder:
        subprocess.run([program(options, "bench_mxm"), "--graph", options.graph, "--export", folder],
                       stdout=subprocess.DEVNULL, check=True)
        for _ in range(options.rounds):
            for system in ("graft", "pyg", "dgl"):
                if system in missing:
                    continue
                told = run_graft(options) if system == "graft" else run_peer(options, system, folder)
                if "failed" in told:
                    missing[system] = f"{system} is not here ({told['failed']}). To get it: {RECIPES[system]}"
                    continue
                versions += [told["version"]] if told["version"] not in versions else []
                for name, line in told["lines"].items():
                    lines.setdefault(name, dict(line, seconds=[]))["seconds"] += line["seconds"]
    print("\n".join(versions))
    print_table(lines)
    for sentence in missing.values():
        print(sentence)
    return any("WRONG" in (trouble_of(name, line, lines["graft"]) or "") for name, line in lines.items())


if __name__ == "__main__":
    sys.exit(main())
