#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares model mgn in Graft and in PyTorch: a forward pass and a training step (forward and backward) on one mesh.

Each system runs in its own process. First the results are compared, and then the processes alternate. PyTorch is
measured in two forms: as most implementations write the model, and with the first product of the edge MLP split into
products of nodes, as Graft computes it. The table has medians of the wall time and, in brackets, of the processor time,
which other programs disturb less.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SQUARE = 1024
LINES = {"graft": ["gemm", "forward", "step"],
         "torch": ["gemm", "forward", "step", "split forward", "split step"]}


class Worker:
    """A process that measures one system. It receives requests as lines, and answers each with a line."""

    def __init__(self, command, threads):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads),
                           PYTHONDONTWRITEBYTECODE="1", OMP_WAIT_POLICY="passive")
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"mgn.py: {self.process.args[0]} ended")
        return line.split()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return [float(word) for word in self.receive()]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", nargs=2, default=["29", "65"], metavar=("X", "Y"), help="default: 29 65")
    parser.add_argument("--width", default="128", metavar="N", help="default: %(default)s")
    parser.add_argument("--layers", default="15", metavar="N", help="default: %(default)s")
    parser.add_argument("--linear", default="3", metavar="N", help="linear layers of an MLP (default: %(default)s)")
    parser.add_argument("--activation", choices=["relu", "elu"], default="relu")
    parser.add_argument("--type", choices=["f32", "f64"], default="f32")
    parser.add_argument("--threads", default="2", metavar="N", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument("--module", default="onednn", help="dense module (default: %(default)s; f64: cblas)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python that has torch")
    options = parser.parse_args()
    if options.type == "f64":
        options.module = "cblas"
    return options


def start(options, folder):
    model = ["--width", options.width, "--layers", options.layers, "--linear", options.linear, "--type", options.type,
             "--activation", options.activation, "--threads", options.threads]
    module = os.path.join(options.build, f"graft_dense_{options.module}.so")
    graft = Worker([os.path.join(options.build, "tests", "bench", "bench_mgn"), "--nodes", *options.nodes, *model,
                    "--module", module, "--serve", folder], options.threads)
    work, name = graft.receive()
    torch = Worker([options.python, os.path.join(HERE, "mgn_worker.py"), folder, options.width, options.layers,
                    options.linear, options.activation, options.type, options.threads], options.threads)
    for form in ("plain", "split"):
        output, gradient = (float(word) for word in torch.receive())
        print(f"output of PyTorch ({form}) within {output:.1e} of that of Graft, gradient {gradient:.1e}")
        if not (output < 1e-5 and gradient < 1e-3):
            sys.exit("mgn.py: results differ")
    print(f"Graft with module {name}, PyTorch {torch.receive()[0]}, {options.threads} threads, "
          f"{float(work) / 1e9:.2f} billion multiply-adds in a forward pass")
    return {"graft": graft, "torch": torch}, float(work)


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        workers, work = start(options, folder)
        seconds = {(who, line): [] for who, lines in LINES.items() for line in lines}
        for round_ in range(-1, options.rounds):
            for who, line in seconds:
                measured = workers[who].ask(line)
                if round_ >= 0:
                    seconds[who, line].append(measured)
        median = {key: [statistics.median(column) for column in zip(*values)] for key, values in seconds.items()}
        for (who, line), (passed, used) in median.items():
            operations = 2 * SQUARE ** 3 if line == "gemm" else 2 * work if "forward" in line else 0
            rate = f"{operations / passed * 1e-9:7.1f} ({operations / used * 1e-9:5.1f}) GFLOP/s" if operations else ""
            print(f"{who:6} {line:14} {passed * 1e3:9.1f} ({used * 1e3:8.1f}) ms  {rate}")
        for column, name in enumerate(["seconds that passed", "seconds of processors"]):
            best = min(median[who, "gemm"][column] for who in LINES)
            share = work / median["graft", "forward"][column] / (SQUARE ** 3 / best)
            print(f"by {name}: forward at {share:.0%} of the best rate of squares; PyTorch takes "
                  f"{median['torch', 'forward'][column] / median['graft', 'forward'][column]:.2f} times as long, split "
                  f"{median['torch', 'split forward'][column] / median['graft', 'forward'][column]:.2f}; a step "
                  f"{median['torch', 'step'][column] / median['graft', 'step'][column]:.2f}, split "
                  f"{median['torch', 'split step'][column] / median['graft', 'step'][column]:.2f}")
        for worker in workers.values():
            worker.process.stdin.close()
            worker.process.wait()


if __name__ == "__main__":
    main()
