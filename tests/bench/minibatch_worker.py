# SPDX-License-Identifier: Apache-2.0
"""One of the other systems in bench_minibatch.py, in its own process.

    minibatch_worker.py SYSTEM DATASET MODEL HIDDEN FANOUT BATCH EPOCHS THREADS SEED EVALUATE CLOCK

Trains the network of epoch_worker.py by minibatch. If EVALUATE is 1, it evaluates the network over all neighbours after
each epoch. CLOCK is perf_counter, or process_time for processor time. Prints {"version", "seconds", "accuracies"} as
JSON: the time of each epoch without its evaluation, and the validation and test accuracies after each epoch.
"""
import sys
import time

import epoch_worker


def pyg_batches(data, fanout, batch, kind):
    """Returns a function that yields the batches of an epoch, and a function that applies a layer to a batch."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    x, labels, edges, seeds = data
    loader = NeighborLoader(Data(x=x, y=labels, edge_index=edges), fanout[::-1], input_nodes=seeds, batch_size=batch,
                            shuffle=True)

    def batches():
        for part in loader:
            edges = part.edge_index
            if kind == "sage":  # a CSR tensor is the fastest form, see epoch_worker.py
                order = torch.argsort(edges[1])
                sources, targets = edges[0][order], edges[1][order]
                pointers = torch.zeros(part.num_nodes + 1, dtype=torch.long)
                pointers[1:] = torch.bincount(targets, minlength=part.num_nodes).cumsum(0)
                edges = torch.sparse_csr_tensor(pointers, sources, torch.ones(len(sources)),
                                                (part.num_nodes, part.num_nodes))
            yield part.x, [edges] * len(fanout), part.y[:part.batch_size]

    return batches, lambda layer, h, edges, last: layer(h, edges)


def dgl_batches(data, fanout, batch, kind):
    import dgl
    import torch
    from dgl.dataloading import NeighborSampler
    x, labels, edges, seeds = data
    graph = dgl.graph((edges[0], edges[1]), num_nodes=len(x))
    if kind == "gat":
        graph = dgl.add_self_loop(dgl.remove_self_loop(graph))
    graph = graph.formats("csc")
    sampler = NeighborSampler([number + (kind == "gat" and number >= 0) for number in fanout])

    def batches():
        order = seeds[torch.randperm(len(seeds))]
        for begin in range(0, len(order), batch):
            sources, targets, blocks = sampler.sample_blocks(graph, order[begin:begin + batch])
            yield x[sources], blocks, labels[targets]

    def apply(layer, h, block, last):
        out = layer(block, (h, h[:block.num_dst_nodes()]))
        if kind != "gat":
            return out
        return out.mean(1) if last else out.flatten(1)  # GATConv returns one row for each head

    return batches, apply


def network(layers, model, apply, x, edges, training):
    """Like forward() of epoch_worker.make_network(), but each layer has its own edges."""
    import torch
    model.train(training)
    h = x
    for i, layer in enumerate(layers):
        last = i + 1 == len(layers)
        h = apply(layer, h, edges[i], last)
        if not last:
            h = torch.nn.functional.dropout(model[len(layers) + i](h).relu(), 0.5, training)
    return h


def train(layers, model, batches, apply):
    """Trains for one epoch, and returns its seconds."""
    import torch
    clock = getattr(time, sys.argv[11])
    begin = clock()
    for x, edges, labels in batches():
        model.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(layers, model, apply, x, edges, True)[:len(labels)],
                                          labels).backward()
        model.optimizer.step()
    return clock() - begin


def evaluate(forward, labels, split):
    """Returns the accuracies on the validation vertices and on the test vertices."""
    import torch
    with torch.no_grad():
        right = (forward(False).argmax(dim=1) == labels).double()
    return [right[(split == which) & (labels >= 0)].mean().item() for which in (2, 3)]


def main():
    import torch
    system, folder, kind = sys.argv[1:4]
    hidden, batch, epochs, threads, seed, is_evaluated = (int(sys.argv[at]) for at in (4, 6, 7, 8, 9, 10))
    fanout = [int(number) for number in sys.argv[5].split(",")]
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    x, labels, split, edges = epoch_worker.load(folder)
    if x.layout != torch.strided:
        x = x.to_dense()
    widths = [x.shape[1]] + [hidden] * (len(fanout) - 1) + [int(labels.max()) + 1]
    whole, sampled = {"pyg": (epoch_worker.pyg_layers, pyg_batches),
                      "dgl": (epoch_worker.dgl_layers, dgl_batches)}[system]
    layers, apply_whole, version = whole(widths, edges, len(x), kind)
    model, forward = epoch_worker.make_network(layers, apply_whole, widths, x)
    model.optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seeds = ((split == 1) & (labels >= 0)).nonzero().flatten()
    batches, apply = sampled((x, labels, edges, seeds), fanout, batch, kind)
    seconds, accuracies = [], []
    for _ in range(epochs):
        seconds.append(train(layers, model, batches, apply))
        if is_evaluated:
            accuracies.append(evaluate(forward, labels, split))
    return {"version": version, "seconds": seconds, "accuracies": accuracies}


if __name__ == "__main__":
    epoch_worker.report(main)
