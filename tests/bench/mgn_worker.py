# SPDX-License-Identifier: Apache-2.0
"""Runs model mgn in PyTorch, as a worker process of mgn.py. It reads the weights, inputs and results that bench_mgn
wrote, and prints how much its output and its gradient differ from those results. Then it reads requests (gemm, forward,
step, split forward, split step), one per line, and answers each with wall seconds and processor seconds."""
import os
import sys
import time

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "harness"))
import mgn_torch  # noqa: E402, pylint: disable=wrong-import-position

FOLDER, WIDTH, LAYERS, LINEAR, ACTIVATION, TYPE, THREADS = sys.argv[1:]
NODE_INPUTS, EDGE_INPUTS, OUTPUTS, SQUARE = 11, 3, 2, 1024


def read(name, dtype, columns=1):
    rows = numpy.fromfile(os.path.join(FOLDER, name), dtype)
    return torch.from_numpy(rows.reshape(-1, columns) if columns > 1 else rows)


def make_net(split):
    net = mgn_torch.MGN(NODE_INPUTS, EDGE_INPUTS, OUTPUTS, int(WIDTH), int(LAYERS), int(LINEAR), True, ACTIVATION,
                        split=split).to(dtype=torch.float64 if TYPE == "f64" else torch.float32)
    at = 0
    for parameter in net.parameters():
        parameter.data.copy_(WEIGHTS[at:at + parameter.numel()].view_as(parameter))
        at += parameter.numel()
    assert at == len(WEIGHTS)
    return net


def forward(net):
    with torch.no_grad():
        return net(NODES, EDGES, SOURCE, TARGET)


def step(net):
    net.zero_grad(set_to_none=True)
    y = net(NODES, EDGES, SOURCE, TARGET)
    (0.5 * (y * y).sum()).backward()


def distance(found, expected):
    return float((found - expected).abs().max() / expected.abs().max())


torch.set_num_threads(int(THREADS))
REAL = "f8" if TYPE == "f64" else "f4"
WEIGHTS = read("weights", REAL)
NODES, EDGES = read("nodes", REAL, NODE_INPUTS), read("edges", REAL, EDGE_INPUTS)
SOURCE, TARGET = read("source", "i4").long(), read("target", "i4").long()
NETS = {"plain": make_net(False), "split": make_net(True)}
SQUARES = [torch.rand(SQUARE, SQUARE, dtype=NODES.dtype) for _ in range(2)]
for kind in NETS.values():
    step(kind)
    gradient = torch.cat([parameter.grad.flatten() for parameter in kind.parameters()])
    print(distance(forward(kind), read("output", REAL, OUTPUTS)), distance(gradient, read("gradient", REAL)))
print(torch.__version__, flush=True)
for line in sys.stdin:
    words = line.split()
    chosen = NETS["split" if words[0] == "split" else "plain"]
    begin, used = time.perf_counter(), time.process_time()
    if words[-1] == "gemm":
        torch.mm(*SQUARES)
    elif words[-1] == "forward":
        forward(chosen)
    else:
        step(chosen)
    print(time.perf_counter() - begin, time.process_time() - used, flush=True)
