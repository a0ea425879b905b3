# SPDX-License-Identifier: Apache-2.0
"""One of the other systems in bench_epoch.py, in its own process.

    epoch_worker.py SYSTEM DATASET MODEL NORM LAYERS HIDDEN EPOCHS THREADS

Trains GraphSAGE with means, GCN or GAT with the default options of Graft: a norm (none, layer or batch), ReLU and
dropout 0.5 between layers, and Adam with learning rate 0.01. Prints {"version", "steps": [seconds], "test_accuracy"} as
JSON.
"""
import json
import os
import sys
import time
import warnings


def load_features(folder):
    """Returns the features as a tensor, which is sparse if the data set stores sparse features."""
    import numpy as np
    import torch
    dense = os.path.join(folder, "features.npy")
    if os.path.exists(dense):
        return torch.from_numpy(np.ascontiguousarray(np.load(dense), np.float32))
    indptr, indices, data, shape = (torch.from_numpy(np.load(os.path.join(folder, f"features_csr_{part}.npy")))
                                    for part in ("indptr", "indices", "data", "shape"))
    return torch.sparse_csr_tensor(indptr, indices.long(), data, tuple(shape.tolist()))


def load(folder):
    """Returns tensors of the features, the labels, the split, and the edges (a row of sources and a row of targets)."""
    import numpy as np
    import torch
    labels, split, edges = (np.load(os.path.join(folder, name + ".npy")) for name in ("labels", "split", "edges"))
    return (load_features(folder), torch.from_numpy(labels.astype(np.int64)), torch.from_numpy(split),
            torch.from_numpy(edges.astype(np.int64)))


def sage_of_sparse(layer, x, adjacency):
    """Computes the same as SAGEConv, but multiplies with the weights before it aggregates. Means of sparse rows would
    not be sparse."""
    from torch_geometric.utils import spmm
    return spmm(adjacency, x @ layer.lin_l.weight.T, reduce="mean") + layer.lin_l.bias + x @ layer.lin_r.weight.T


def pyg_gin(a, b):
    from torch.nn import Linear, ReLU, Sequential
    from torch_geometric.nn import GINConv
    return GINConv(Sequential(Linear(a, b), ReLU(), Linear(b, b)))


def pyg_layers(widths, edges, n, kind="sage", heads=4):
    """Returns a network of PyTorch Geometric. Its layers take the adjacency matrix as a CSR tensor, which is the
    fastest form on a CPU. gat needs a list of edges instead."""
    import torch
    import torch_geometric
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv
    from torch_geometric.utils import to_torch_csr_tensor
    adjacency = edges if kind == "gat" else to_torch_csr_tensor(edges.flip(0), size=(n, n))
    make = {"sage": lambda a, b, last: SAGEConv(a, b, aggr="mean"),
            "gcn": lambda a, b, last: GCNConv(a, b, cached=True),
            "gat": lambda a, b, last: GATConv(a, b if last else b // heads, heads, concat=not last),
            "gin": lambda a, b, last: pyg_gin(a, b)}[kind]
    layers = [make(a, b, i + 2 == len(widths)) for i, (a, b) in enumerate(zip(widths, widths[1:]))]
    version = f"torch_geometric {torch_geometric.__version__} with torch {torch.__version__}"

    def apply(layer, h):
        if h.layout != torch.strided and kind == "sage":
            return sage_of_sparse(layer, h, adjacency)
        return layer(h if kind in ("sage", "gcn") or h.layout == torch.strided else h.to_dense(), adjacency)

    return layers, apply, version


def dgl_layers(widths, edges, n, kind="sage", heads=4):
    import dgl
    import torch
    from dgl.nn import GATConv, GraphConv, SAGEConv
    graph = dgl.graph((edges[0].int(), edges[1].int()), num_nodes=n)
    if kind != "sage":
        graph = dgl.add_self_loop(dgl.remove_self_loop(graph))
    graph = graph.formats(["csc", "csr"] + (["coo"] if kind == "gat" else []))  # attention scores need coo
    graph.create_formats_()
    make = {"sage": lambda a, b, last: SAGEConv(a, b, "mean"),
            "gcn": lambda a, b, last: GraphConv(a, b),
            "gat": lambda a, b, last: GATConv(a, b if last else b // heads, heads)}[kind]
    layers = [make(a, b, i + 2 == len(widths)) for i, (a, b) in enumerate(zip(widths, widths[1:]))]

    def apply(layer, h):
        out = layer(graph, h)
        if kind != "gat":
            return out
        return out.mean(1) if layer is layers[-1] else out.flatten(1)  # GATConv returns one row for each head

    return layers, apply, f"dgl {dgl.__version__} with torch {torch.__version__}"


def make_network(layers, apply, widths, x, norm="layer"):
    """Returns all weights, and a function that computes the logits, for training or for evaluation."""
    import torch
    make = {"none": torch.nn.Identity, "layer": torch.nn.LayerNorm, "batch": torch.nn.BatchNorm1d}[norm]
    model = torch.nn.ModuleList(layers + [make(width) for width in widths[1:-1]])

    def forward(training):
        model.train(training)
        h = x
        for i, layer in enumerate(layers):
            h = apply(layer, h)
            if i + 1 < len(layers):
                h = torch.nn.functional.dropout(model[len(layers) + i](h).relu(), 0.5, training)
        return h

    return model, forward


def step(forward, optimizer, labels, train):
    """Performs one training step, and returns its loss."""
    import torch
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(forward(True)[train], labels[train])
    loss.backward()
    optimizer.step()
    return loss.item()


def measure(forward, labels, split):
    """Returns the accuracy on the test vertices."""
    import torch
    with torch.no_grad():
        right = forward(False).argmax(dim=1) == labels
    return right[(split == 3) & (labels >= 0)].double().mean().item()


def main():
    import torch
    system, folder, kind, norm = sys.argv[1:5]
    n_layers, hidden, epochs, threads = map(int, sys.argv[5:])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    x, labels, split, edges = load(folder)
    widths = [x.shape[1]] + [hidden] * (n_layers - 1) + [int(labels.max()) + 1]
    layers, apply, version = {"pyg": pyg_layers, "dgl": dgl_layers}[system](widths, edges, len(x), kind)
    model, forward = make_network(layers, apply, widths, x, norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train = (split == 1) & (labels >= 0)
    steps = []
    for _ in range(epochs):
        begin = time.perf_counter()
        step(forward, optimizer, labels, train)
        steps.append(time.perf_counter() - begin)
    return {"version": version, "steps": steps, "test_accuracy": measure(forward, labels, split)}


def report(work):
    """Print the result of work() as JSON. Output of the measured system is redirected to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    try:
        answer = work()
    except Exception as error:  # the parent process reports every failure of the package
        answer = {"failed": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    report(main)
