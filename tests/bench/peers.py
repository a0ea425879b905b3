#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Graft with PyTorch, PyTorch Geometric and DGL: the same sums over neighbours on one graph, in one run.

Every system runs in its own process, with the Python interpreter that the options name for it, so that the thread pools
of the systems are separate. First the results are compared with those of Graft. Then the processes alternate: in each
round every line of the table is measured once, while the other processes sleep. Systems that are not installed are
reported, with a command that installs them. See README.md.
"""
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SLOW_SECONDS, SLOW_REPEAT = 8, 3  # slower lines are measured only this often

# For the name of each system: the option with its Python interpreter, the package it needs, and how to install that.
SYSTEMS = {
    "graft": (None, "numpy", "pip install numpy, or the Debian package python3-numpy"),
    "torch": ("python_torch", "torch", "pip install torch"),
    "pyg": ("python_torch", "torch_geometric", "pip install torch torch_geometric"),
    "torch_scatter": ("python_torch", "torch_scatter",
                      "pip install --no-build-isolation torch_scatter, which compiles against the torch that is there"),
    "dgl": ("python_dgl", "dgl",
            "pip install dgl==1.1.3 torch 'setuptools<70' packaging, where need be in an environment of its own, "
            "and then --python-dgl with the path of its Python"),
}
FORMS = ("plain", "mean", "max", "max_winner", "index_add")


class Failed(Exception):
    """A system cannot continue. The text has the reason."""


class Worker:
    """A process that measures one system. Its requests and answers are lines of JSON."""

    def __init__(self, system, python, options, folder):
        environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), MKL_NUM_THREADS=str(options.threads),
                           PYTHONDONTWRITEBYTECODE="1", DGLBACKEND="pytorch", GRAFT_LIBRARY=options.library,
                           GLIBC_TUNABLES="glibc.malloc.hugetlb=1")  # all systems allocate huge pages, like Graft
        command = [python, os.path.join(HERE, "peer_worker.py"), system, folder, str(options.width),
                   str(options.threads)]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        hello = self.receive()
        self.lines, self.version = hello["lines"], hello["version"]  # a line is [name, form]

    def receive(self):
        answer = self.process.stdout.readline()
        if not answer:
            code = self.process.wait()
            raise Failed("killed, most likely for want of memory" if code == -signal.SIGKILL
                         else f"ended with status {code}")
        answer = json.loads(answer)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def ask(self, what, name, form):
        try:
            print(json.dumps([what, name, form]), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # receive() reports the reason
        return self.receive()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Line:
    """One line of the table, which is one form of product in one system."""

    def __init__(self, worker, name, form):
        self.worker, self.name, self.form = worker, name, form
        self.seconds, self.trouble, self.wrong, self.wanted = [], None, False, 0

    def ask(self, what):
        try:
            return self.worker.ask(what, self.name, self.form)
        except Failed as failed:
            self.trouble = str(failed)
            return None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--graph", default="rmat:18:2000000", metavar="GRAPH",
                        help="rmat:SCALE:EDGES, uniform:N:EDGES or a data set (default: %(default)s)")
    parser.add_argument("--width", type=int, default=128, metavar="N", help="columns (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="threads of every system (default: all processors)")
    parser.add_argument("--repeat", type=int, default=5, metavar="N",
                        help="measurements of each line, after one to warm up (default: %(default)s)")
    parser.add_argument("--forms", default=",".join(FORMS[:4]), metavar="LIST",
                        help="some of " + ", ".join(FORMS) + "; each system holds one array of a row for each edge for "
                        "index_add (default: %(default)s)")
    parser.add_argument("--systems", default=",".join(SYSTEMS), metavar="LIST", help="default: %(default)s")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR",
                        help="where Graft was built (default: %(default)s)")
    parser.add_argument("--python-torch", default=sys.executable, metavar="PATH",
                        help="Python for torch and torch_geometric (default: the one that runs this)")
    parser.add_argument("--python-dgl", default=sys.executable, metavar="PATH",
                        help="Python for dgl (default: the one that runs this)")
    options = parser.parse_args()
    options.systems, options.forms = options.systems.split(","), options.forms.split(",")
    options.library = os.environ.get("GRAFT_LIBRARY", os.path.join(options.build, "libgraft.so"))
    for form in options.forms:
        if form not in FORMS:
            parser.error(f"--forms names '{form}', expected some of {', '.join(FORMS)}")
    for system in options.systems:
        if system not in SYSTEMS:
            parser.error(f"--systems names '{system}', expected some of {', '.join(SYSTEMS)}")
    if min(options.width, options.threads, options.repeat) < 1:
        parser.error("--width, --threads and --repeat must be at least 1")
    return options


def export_graph(options, folder):
    """Let bench_mxm write the graph to the folder. Returns the description of the graph that bench_mxm prints."""
    program = os.path.join(options.build, "tests", "bench", "bench_mxm")
    command = [program, "--graph", options.graph, "--threads", str(options.threads), "--export", folder]
    try:
        made = subprocess.run(command, env=dict(os.environ, GRAFT_LIBRARY=options.library), stdout=subprocess.PIPE,
                              text=True, check=True)
    except OSError as error:
        sys.exit(f"peers.py: cannot run {program}: {error.strerror}. "
                 "Build Graft first, or name its build with --build.")
    except subprocess.CalledProcessError:
        sys.exit("peers.py: bench_mxm could not make the graph, see above")
    return made.stdout.splitlines()[0]


def start_workers(options, folder):
    """Returns the workers that could be started, beginning with Graft, and a sentence about each of the others."""
    workers, missing = [], []
    for system, (choice, package, recipe) in SYSTEMS.items():
        if system != "graft" and system not in options.systems:
            continue
        python = getattr(options, choice) if choice else sys.executable
        try:
            workers.append(Worker(system, python, options, folder))
        except (Failed, OSError) as failed:
            missing.append(f"{system} is not here ({failed}). To get {package}: {recipe}")
            if system == "graft":
                sys.exit(f"peers.py: {missing[0]}")
    return workers, missing


def check(lines, folder):
    """Run every line once, and compare its result with that of Graft for the same form."""
    import numpy  # the worker of Graft needs it too, and has reported if it is missing

    ours = {}
    for line in lines:
        answer = line.ask("check")
        if answer is None:
            continue
        found = [numpy.load(os.path.join(folder, name)) for name in answer["files"]]
        expected = ours.setdefault(line.form, found)  # the lines of Graft are first
        off = [not numpy.allclose(x, y, rtol=1e-5, atol=1e-5) for x, y in zip(found, expected)]
        if any(off):
            line.wrong, line.trouble = True, "WRONG: " + " and ".join(
                text for text, is_off in zip(("rows", "sums of the columns"), off) if is_off) + " differ from Graft's"
        line.wanted = SLOW_REPEAT if answer["seconds"] > SLOW_SECONDS else sys.maxsize


def measure(lines, repeat):
    for turn in range(repeat):
        for line in lines:
            if line.trouble is None and turn < line.wanted:
                time.sleep(0.02)  # until the threads of the previous system stop spinning and sleep
                answer = line.ask("run")
                if answer is not None:
                    line.seconds.append(answer["seconds"])


def print_table(lines, options, bytes_moved):
    """Print the table, sorted by form, with Graft first. The last column is the time divided by that of Graft."""
    wide = max(len(line.name) for line in lines)
    print(f"\n{'form':10}  {'system':{wide}}  {'runs':>4}  {'seconds':>9}  {'GB/s':>7}  {'s:graft':>7}")
    for form in FORMS:
        ours = None
        for line in (line for line in lines if line.form == form):
            if line.trouble is not None:
                print(f"{form:10}  {line.name:{wide}}  {line.trouble}")
                continue
            median = statistics.median(line.seconds)
            ours = ours or median
            print(f"{form:10}  {line.name:{wide}}  {len(line.seconds):4}  {median:9.4f}  "
                  f"{bytes_moved / median * 1e-9:7.2f}  {median / ours:7.2f}")


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="graft-peers-") as folder:
        heading = export_graph(options, folder)
        n, nnz = (int(x) for x in re.search(r": (\d+) vertices, (\d+) entries", heading).groups())
        workers, missing = start_workers(options, folder)
        lines = [Line(worker, *line) for worker in workers for line in worker.lines if line[1] in options.forms]
        try:
            check(lines, folder)
            measure(lines, options.repeat)
        finally:
            for worker in workers:
                worker.end()
    print(heading)
    print(f"width {options.width}, threads {options.threads}; " + ", ".join(worker.version for worker in workers))
    print_table(lines, options, 4 * nnz * options.width + 4 * n * options.width + 4 * nnz)
    for sentence in missing:
        print(sentence)
    return any(line.wrong for line in lines)


if __name__ == "__main__":
    sys.exit(main())
