#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures training over ranks on two hosts with a slow network between them. tests/bench/two_hosts.sh runs this script
on the first host. The script sets the rate of the network, measures it, runs graft-train with each set of options in
turn, and prints a table.
"""
import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

FIRST, SECOND, NETWORK = "10.77.0.1", "10.77.0.2", "10.77.0.0/24"
COMPARED = ["halo.cover=post", "halo.cover=pre", "halo.cover=hybrid"]
MESSAGES = ["halo.cover=post", "halo.codec=f32", "halo.codec=q8", "halo.codec=q2", "halo.codec=q1", "halo.staleness=1",
            "halo.codec=q2 halo.staleness=1", "halo.codec=q1 halo.staleness=1", "halo.codec=adaptive"]
MODEL = ["model=sage", "layers=3", "hidden=256", "partition=stream", "eval_every=0", "halo.timeout=120"]
# The largest allowed differences of losses and of accuracies. The key says whether the sets of options train different
# models.
AGREE = {False: (1e-3, 1e-3), True: (0.2, 0.05)}
UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}
# The smallest burst of the token-bucket filter, which exceeds the largest TCP segment. The burst is otherwise the
# volume of one millisecond at the limit.
LEAST_BURST = 128 * 1024
# The program of a process on the second host. It receives a number of bytes, acknowledges them, and sends the same
# number of bytes back.
ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
connection, left = server.accept()[0], int(sys.argv[2])
while left > 0:
    left -= len(connection.recv(1 << 20))
connection.sendall(b".")
connection.recv(1)
connection.sendall(bytes(int(sys.argv[2])))
"""


class Problem(Exception):
    """An error that ends the program."""
    status = 1


class Lacking(Problem):
    """This machine lacks a tool or a permission that the measurement needs."""
    status = 77


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"two_hosts.sh: {message}\n")


def arguments():
    parser = Parser(prog="two_hosts.sh", usage="%(prog)s [options] [DATASET] [-- KEY=VALUE ...]",
                    description="Trains on two hosts made of this machine, with a limited rate between them, and "
                                "prints how many bytes and seconds an epoch takes with each set of options. "
                                "KEY=VALUE are options of graft-train for all runs. Needs root.")
    parser.add_argument("dataset", nargs="?", metavar="DATASET", help="default: the graph of the Debian archive")
    parser.add_argument("--rate", "--rates", dest="rates", type=str.split, default=["1gbit"], metavar="RATE",
                        help="of the network, as for tc; or several, as '1gbit 100mbit' (default: 1gbit)")
    parser.add_argument("--ranks", type=int, default=2, metavar="N", help="half of them on each host (default: 2)")
    parser.add_argument("--compare", nargs="+", default=COMPARED, metavar="'KEY=VALUE ...'",
                        help="sets of options, the first of which the others are compared with "
                             f"(default: {' '.join(COMPARED)})")
    parser.add_argument("--messages", dest="compare", action="store_const", const=MESSAGES,
                        help=f"compare {', '.join(MESSAGES)}")
    parser.add_argument("--epochs", type=int, default=12, metavar="N", help="of each run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each set (default: %(default)s)")
    parser.add_argument("--threads", type=int, metavar="N", help="of each rank (default: processors / ranks)")
    parser.add_argument("--agree", type=float, metavar="X",
                        help="largest difference of losses, relatively, and of test accuracies (default: 0.001; with "
                             "--messages 0.2 and 0.05, because quantized and stale rows train another model)")
    parser.add_argument("--build", metavar="DIR", help="default: build")
    parser.add_argument("--second", type=int, required=True, help=argparse.SUPPRESS)  # ID of its process
    parser.add_argument("--shell", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--root", required=True, help=argparse.SUPPRESS)
    given, extra = sys.argv[1:], []
    if "--" in given:
        given, extra = given[:given.index("--")], given[given.index("--") + 1:]
    options = parser.parse_args(given)
    options.extra = extra
    if options.ranks < 2 or options.epochs < 4 or options.rounds < 1:
        parser.error("--ranks must be 2 at least, --epochs 4, --rounds 1")
    for rate in options.rates:
        bits_per_second(rate)
    for word in [word for settings in options.compare for word in settings.split()] + extra:
        if "=" not in word:
            parser.error(f"an option of graft-train is KEY=VALUE, found '{word}'")
    options.agree = (options.agree,) * 2 if options.agree is not None else AGREE[options.compare is MESSAGES]
    options.build = options.build or os.path.join(options.root, "build")
    options.threads = options.threads or max(1, len(os.sched_getaffinity(0)) // options.ranks)
    return options


def bits_per_second(rate):
    match = re.fullmatch(r"([\d.]+)([kmg]?)bit", rate)
    if not match:
        raise Problem(f"--rate is '{rate}', expected a number and its unit, as 1gbit or 100mbit")
    return float(match.group(1)) * UNITS[match.group(2)]


def call(command, what):
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout
    except FileNotFoundError:
        raise Problem(f"{what}: there is no {command[0]}") from None
    except subprocess.CalledProcessError as error:
        raise Problem(f"{what}: {error.stderr.strip() or error.stdout.strip()}") from None


def on_both(options, command, what):
    """Run the command on each host. Returns the outputs."""
    return [call(where + command, what) for where in ([], on_second(options))]


def on_second(options):
    return ["nsenter", "--target", str(options.second), "--net", "--uts"]


def limit(options, rate):
    burst = max(LEAST_BURST, int(bits_per_second(rate) / 8000))
    try:
        on_both(options, ["tc", "qdisc", "replace", "dev", "wire", "root", "tbf", "rate", rate, "burst", str(burst),
                          "latency", "100ms"], f"the rate {rate} cannot be set")
    except Problem as problem:
        raise Lacking(*problem.args) from None


def bytes_sent(options):
    """Returns the number of bytes that both hosts have sent since they were created."""
    told = on_both(options, ["ip", "-s", "-j", "link", "show", "dev", "wire"], "the counters cannot be read")
    return sum(json.loads(one)[0]["stats64"]["tx"]["bytes"] for one in told)


def measure_rate(options, count):
    """Returns the bits per second of a transfer of `count` bytes to the second host, and of a transfer back."""
    command = [*on_second(options), sys.executable, "-c", ECHO, SECOND, str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as echo:
        port = int(echo.stdout.readline())
        with socket.create_connection((SECOND, port)) as connection:
            begin = time.monotonic()
            connection.sendall(bytes(count))
            connection.recv(1)
            between = time.monotonic()
            connection.sendall(b".")
            left = count
            while left > 0:
                left -= len(connection.recv(1 << 20))
            end = time.monotonic()
    return 8 * count / (between - begin), 8 * count / (end - between)


def check_rate(options, rate):
    """Check that the limit of the rate is effective, and that the counters of the devices are correct."""
    asked = bits_per_second(rate)
    count, before = int(asked / 8), bytes_sent(options)
    there, back = measure_rate(options, count)
    counted = bytes_sent(options) - before
    print(f"{rate}: {count / 1e6:.0f} MB at {there / 1e6:.1f} Mbit/s, back at {back / 1e6:.1f}; "
          f"{counted / 1e6:.1f} MB counted on the wire\n", flush=True)
    if not all(0.8 * asked < one < 1.05 * asked for one in (there, back)) or not 1 < counted / (2 * count) < 1.1:
        raise Problem(f"the rate is not {rate}: no numbers of it are worth having")


def launcher(options):
    """Returns the command that starts Open MPI with TCP alone. Open MPI must not use shared memory, because the second
    host of this measurement is on the same machine."""
    parameters = {"plm": "rsh", "plm_rsh_agent": options.shell, "plm_rsh_no_tree_spawn": "1", "pml": "ob1",
                  "btl": "tcp,self", "btl_tcp_if_include": NETWORK, "oob_tcp_if_include": NETWORK,
                  "mpi_yield_when_idle": "1"}
    on_first = (options.ranks + 1) // 2
    command = ["mpiexec.openmpi", "--allow-run-as-root", "--bind-to", "none", "-n", str(options.ranks), "--host",
               f"{FIRST}:{on_first},{SECOND}:{options.ranks - on_first}"]
    for key, value in parameters.items():
        command += ["--mca", key, value]
    return command


def train(options, settings, folder):
    """Run graft-train once. Returns its report, and the number of bytes that had been sent when each epoch ended."""
    told = os.path.join(folder, "told.json")
    command = [*launcher(options), os.path.join(options.build, "graft-train"), options.dataset, "--json", told, "--set",
               *MODEL, f"epochs={options.epochs}", f"threads={options.threads}", *options.extra, *settings.split()]
    sent = []
    with open(os.path.join(folder, "errors"), "w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child:
            for line in child.stdout:
                if re.match(r"epoch \d+/", line):
                    sent.append(bytes_sent(options))
        errors.seek(0)
        if child.returncode != 0:
            said = errors.read()
            own = "\n".join(re.findall("^graft-train: .*", said, re.MULTILINE))
            raise Problem(f"with {settings} graft-train ended with {child.returncode}: {own or said.strip()}")
    with open(told) as file:
        return json.load(file), sent


class Results:
    """The results of all runs with one set of options."""

    def __init__(self):
        self.report = None
        self.losses, self.seconds, self.sent, self.waiting = [], [], [], []

    def add(self, report, sent):
        """Add the results of a run. The first epoch also aggregates the features, and the last epoch also evaluates, so
        their times and bytes are not counted."""
        seconds = [epoch["seconds"] for epoch in report["history"]]
        self.report = report
        self.losses.append([epoch["loss"] for epoch in report["history"]])
        self.seconds += seconds[1:-1]
        self.sent += [after - before for before, after in zip(sent[:-2], sent[1:-1])]
        self.waiting.append(report["wait_seconds"] / sum(seconds))


def disagreement(one, other):
    """Returns the largest relative difference of the losses, and the difference of the test accuracies."""
    apart = [abs(a - b) / abs(b) for losses in one.losses for a, b in zip(losses, other.losses[0])]
    return max(apart), abs(one.report["test_accuracy"] - other.report["test_accuracy"])


def print_table(options, results):
    first = results[options.compare[0]]
    base = statistics.median(first.sent), statistics.median(first.seconds)
    print("| options | rows | MB per epoch | MB on the wire | s per epoch | waiting | bytes: first / this | "
          "time: first / this |\n|---|---|---|---|---|---|---|---|")
    for settings, one in results.items():
        sent, seconds = statistics.median(one.sent), statistics.median(one.seconds)
        print(f"| `{settings}` | {one.report['halo_rows']:,} | {one.report['halo_bytes_per_epoch'] / 1e6:.2f} | "
              f"{sent / 1e6:.2f} | {seconds:.4f} | {100 * statistics.median(one.waiting):.0f} % | "
              f"{base[0] / sent:.2f} | {base[1] / seconds:.2f} |")
    print(flush=True)


def compare(options, rate):
    """Run all sets of options in turn, and print the table. Returns whether the results of all sets agree."""
    results = {settings: Results() for settings in options.compare}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for settings, one in results.items():
                one.add(*train(options, settings, folder))
    print_table(options, results)
    first, fine = results[options.compare[0]], True
    for settings, one in results.items():
        apart = disagreement(one, first)
        if not all(found <= allowed for found, allowed in zip(apart, options.agree)):
            print(f"two_hosts.sh: {rate}, {settings}: losses are {apart[0]:.2g} and accuracies {apart[1]:.2g} apart "
                  f"from those with {options.compare[0]}, expected {options.agree[0]:g} and {options.agree[1]:g} at "
                  "most", file=sys.stderr)
            fine = False
    return fine


def find_dataset(options):
    """Use the given data set, or the Debian graph, which is created if it does not exist."""
    if options.dataset is None:
        options.dataset = os.path.join(options.build, "debian-archive")
        if not os.path.exists(os.path.join(options.dataset, "names.txt")):
            maker = os.path.join(options.root, "examples", "debian-archive", "make_dataset.py")
            call([sys.executable, maker, options.dataset], "the graph of the Debian archive cannot be made")
    if not os.access(os.path.join(options.build, "graft-train"), os.X_OK):
        raise Problem(f"there is no graft-train in {options.build}; build Graft first, or name its build with --build")


def main():
    options = arguments()
    find_dataset(options)
    print(f"{options.dataset}: {options.ranks} ranks on two hosts, {options.threads} threads each, {options.epochs} "
          f"epochs, {options.rounds} rounds; {' '.join([*MODEL, *options.extra])}\n", flush=True)
    fine = True
    for rate in options.rates:
        limit(options, rate)
        check_rate(options, rate)
        fine = compare(options, rate) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        print(f"two_hosts.sh: {problem}", file=sys.stderr)
        sys.exit(problem.status)
