# SPDX-License-Identifier: Apache-2.0
"""One of the other systems in sampler.py, in its own process.

    sampler_worker.py SYSTEM FOLDER BATCH SEEDS FANOUT THREADS EPOCHS CLOCK

CLOCK is perf_counter, or process_time for processor time.

Samples the graph that bench_mxm has exported to FOLDER, with every sampler of the system. Prints {"version", "lines":
{name: {"seconds": [...], "edges", "first_edges"}}} as JSON: the seconds of each epoch after one epoch to warm up, the
number of edges in an epoch, and the number of edges that lead to seeds.
"""
import math
import os
import sys
import time

from epoch_worker import report


def spread_seeds(n, count):
    """Returns the same vertices as bench_sampler.c, in random order."""
    import numpy as np
    step = next(step for step in range(max(int(0.618 * n), 1), 0, -1) if math.gcd(step, n) == 1)
    return np.random.default_rng(1).permutation(np.arange(min(count, n)) * step % n)


def clock():
    return getattr(time, sys.argv[8])()


def numbers_of_workers():
    """Returns the numbers of worker processes to measure. The processor time of this process excludes that of workers,
    so with that clock there are none."""
    return (0,) if sys.argv[8] == "process_time" else (0, 2)


def measure(epoch, epochs):
    """Measure epochs. epoch() yields a pair for each batch: its number of edges, and a function that counts the edges
    that lead to seeds."""
    pairs = [(edges, first()) for edges, first in epoch()]
    seconds = []
    for _ in range(epochs):
        begin = clock()
        for _ in epoch():
            pass
        seconds.append(clock() - begin)
    return {"seconds": seconds, "edges": sum(pair[0] for pair in pairs), "first_edges": sum(pair[1] for pair in pairs)}


def dgl_lines(indptr, indices, batch, seeds, fanout, epochs):
    import dgl
    import torch
    from dgl.dataloading import DataLoader, NeighborSampler
    lines = {}

    def counted(blocks):
        return sum(block.num_edges() for block in blocks), blocks[-1].num_edges

    for bits, kind in (64, torch.int64), (32, torch.int32):  # in DGL 1.1.3 fused sampling with 32 bits omits most edges
        graph = dgl.graph(("csc", (indptr.to(kind), indices.to(kind), torch.empty(0, dtype=kind))),
                          num_nodes=len(indptr) - 1).formats("csc")
        mine, sampler = seeds.to(kind), NeighborSampler(fanout, fused=bits == 64)

        def direct(graph=graph, mine=mine, sampler=sampler):
            for begin in range(0, len(mine), batch):
                yield counted(sampler.sample_blocks(graph, mine[begin:begin + batch])[2])

        lines[f"dgl sample_blocks, {bits} bits"] = measure(direct, epochs)
        for workers in numbers_of_workers():
            loader = DataLoader(graph, mine, sampler, batch_size=batch, num_workers=workers,
                                persistent_workers=workers > 0)
            lines[f"dgl DataLoader, {bits} bits, {workers} workers"] = measure(
                lambda loader=loader: (counted(blocks) for _, _, blocks in loader), epochs)
    return f"dgl {dgl.__version__} with torch {torch.__version__}", lines


def pyg_lines(indptr, indices, batch, seeds, fanout, epochs):
    import torch
    import torch_geometric
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.typing import WITH_PYG_LIB
    rows = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())
    data = Data(edge_index=torch.stack([indices.long(), rows]), num_nodes=len(indptr) - 1)
    lines = {}

    def loaded(loader):
        for part in loader:
            yield part.edge_index.shape[1], lambda part=part: int((part.edge_index[1] < part.batch_size).sum())

    for workers in numbers_of_workers():
        loader = NeighborLoader(data, fanout[::-1], input_nodes=seeds, batch_size=batch, num_workers=workers,
                                persistent_workers=workers > 0)
        lines[f"pyg NeighborLoader, {workers} workers"] = measure(lambda loader=loader: loaded(loader), epochs)
    if not WITH_PYG_LIB:
        columns, rows, backwards = indptr.long(), indices.long(), fanout[::-1]

        def direct():
            for begin in range(0, len(seeds), batch):
                mine = seeds[begin:begin + batch]
                _, _, target, _ = torch.ops.torch_sparse.neighbor_sample(columns, rows, mine, backwards, False, True)
                yield len(target), lambda: 0

        first = lines["pyg NeighborLoader, 0 workers"]["first_edges"]
        lines["pyg torch_sparse::neighbor_sample"] = dict(measure(direct, epochs), first_edges=first)
    import torch_sparse
    below = "pyg-lib" if WITH_PYG_LIB else f"torch_sparse {torch_sparse.__version__}"
    return f"torch_geometric {torch_geometric.__version__} with {below} and torch {torch.__version__}", lines


def main():
    import numpy as np
    import torch
    system, folder = sys.argv[1:3]
    batch, count, threads, epochs = (int(sys.argv[at]) for at in (3, 4, 6, 7))
    torch.set_num_threads(threads)
    indptr, (indices, _) = (np.load(os.path.join(folder, name)) for name in ("indptr.npy", "edges.npy"))
    seeds = torch.from_numpy(spread_seeds(len(indptr) - 1, count))
    fanout = [int(number) for number in sys.argv[5].split(",")]
    version, lines = {"dgl": dgl_lines, "pyg": pyg_lines}[system](
        torch.from_numpy(indptr), torch.from_numpy(np.ascontiguousarray(indices)), batch, seeds, fanout, epochs)
    return {"version": version, "lines": lines}


if __name__ == "__main__":
    report(main)
