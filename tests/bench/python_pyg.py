#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a training step of GraphSAGE in PyTorch Geometric, with its own aggregation and with that of Graft.

    PYTHONPATH=build/adapters/python peers/bin/python tests/bench/python_pyg.py build/debian-archive

The models have the same layers, with LayerNorm, ReLU and dropout 0.5 between them, and the same optimiser, Adam. In one
model graft.torch.replace() has replaced the aggregation. Graphs are passed to PyTorch Geometric as a list of edges and
as a CSR tensor, which is its fastest form on a CPU. The models alternate step by step in one process. The losses of
their first steps must agree."""
import argparse
import copy
import os
import statistics
import sys
import time

import epoch_worker


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="a folder of .npy files, as examples/debian-archive/make_dataset.py makes it")
    parser.add_argument("--layers", type=int, default=3, metavar="N", help="default: %(default)s")
    parser.add_argument("--hidden", type=int, default=128, metavar="N", help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=12, metavar="N", help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    return parser.parse_args()


class System:
    """A model, the graph in the form that the model accepts, and the optimiser."""

    def __init__(self, name, layers, graph, widths, x):
        import torch
        self.name, self.seconds, self.processor = name, [], []
        self.model, self.forward = epoch_worker.make_network(layers, lambda layer, h: layer(h, graph), widths, x)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def step(self, labels, train):
        begin = time.perf_counter(), time.process_time()
        loss = epoch_worker.step(self.forward, self.optimizer, labels, train)
        self.seconds.append(time.perf_counter() - begin[0])
        self.processor.append(time.process_time() - begin[1])
        return loss


def make_systems(options, x, edges, widths):
    import graft.torch
    from torch_geometric.nn import SAGEConv
    from torch_geometric.utils import to_torch_csr_tensor
    adjacency = to_torch_csr_tensor(edges.flip(0), size=(len(x), len(x)))
    layers = [SAGEConv(a, b, aggr="mean") for a, b in zip(widths, widths[1:])]
    ours = {"Graft, edges": edges, "Graft, CSR": adjacency}
    systems = []
    for name, graph in {**ours, "PyG, edges": edges, "PyG, CSR": adjacency}.items():
        mine = copy.deepcopy(layers)
        if name in ours:
            for layer in mine:
                graft.torch.replace(layer)
        systems.append(System(name, mine, graph, widths, x))
    return systems


def main():
    import torch
    import torch_geometric
    options = arguments()
    torch.set_num_threads(options.threads)
    x, labels, split, edges = epoch_worker.load(options.dataset)
    train = (split == 1) & (labels >= 0)
    widths = [x.shape[1]] + [options.hidden] * (options.layers - 1) + [int(labels.max()) + 1]
    systems = make_systems(options, x, edges, widths)
    losses = []
    for i in range(options.steps + 1):
        for system in systems:
            torch.manual_seed(i)
            losses.append(system.step(labels, train))
    first = losses[:len(systems)]
    if max(first) - min(first) > 1e-4 * max(first):
        sys.exit(f"python_pyg.py: the losses of the first step differ: {first}")
    ours = systems[0]
    print(f"{options.dataset}: sage, {'-'.join(map(str, widths))}, {options.threads} threads, {options.steps} steps; "
          f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}\n")
    print(f"{'aggregation':14}  {'step, s':>8}  {'least':>8}  {'processor, s':>12}  {'time / Graft, edges':>19}  "
          f"{'of processor':>12}")
    for system in systems:
        wall, processor = (statistics.median(a / b for a, b in zip(theirs[1:], mine[1:])) for theirs, mine in
                           ((system.seconds, ours.seconds), (system.processor, ours.processor)))
        print(f"{system.name:14}  {statistics.median(system.seconds[1:]):8.4f}  {min(system.seconds[1:]):8.4f}  "
              f"{statistics.median(system.processor[1:]):12.4f}  {wall:19.2f}  {processor:12.2f}")


if __name__ == "__main__":
    main()
