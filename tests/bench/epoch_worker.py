# SPDX-License-Identifier: Apache-2.0
"""One peer of bench_epoch.py in a process of its own: epoch_worker.py SYSTEM DATASET LAYERS HIDDEN EPOCHS THREADS

Trains GraphSAGE with means as Graft does by default: LayerNorm, ReLU and dropout 0.5 between layers, Adam with rate
0.01. Prints {"version", "steps": [seconds], "test_accuracy"} as JSON.
"""
import json
import os
import sys
import time
import warnings


def load(folder):
    """Features, labels, split and the two rows of edges, source and target, as tensors."""
    import numpy as np
    import torch
    arrays = [np.load(os.path.join(folder, name + ".npy")) for name in ("features", "labels", "split", "edges")]
    features, labels, split, edges = arrays
    return (torch.from_numpy(np.ascontiguousarray(features, np.float32)), torch.from_numpy(labels.astype(np.int64)),
            torch.from_numpy(split), torch.from_numpy(edges.astype(np.int64)))


def pyg_layers(widths, edges, n):
    """Layers on the adjacency as a CSR tensor, which is PyTorch Geometric's fastest way on a CPU."""
    import torch
    import torch_geometric
    from torch_geometric.nn import SAGEConv
    from torch_geometric.utils import to_torch_csr_tensor
    adjacency = to_torch_csr_tensor(edges.flip(0), size=(n, n))
    layers = [SAGEConv(a, b, aggr="mean") for a, b in zip(widths, widths[1:])]
    version = f"torch_geometric {torch_geometric.__version__} with torch {torch.__version__}"
    return layers, lambda layer, h: layer(h, adjacency), version


def dgl_layers(widths, edges, n):
    import dgl
    import torch
    from dgl.nn import SAGEConv
    graph = dgl.graph((edges[0].int(), edges[1].int()), num_nodes=n).formats(["csc", "csr"])
    graph.create_formats_()
    layers = [SAGEConv(a, b, "mean") for a, b in zip(widths, widths[1:])]
    return layers, lambda layer, h: layer(graph, h), f"dgl {dgl.__version__} with torch {torch.__version__}"


def main():
    import torch
    system, folder = sys.argv[1:3]
    n_layers, hidden, epochs, threads = map(int, sys.argv[3:])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    x, labels, split, edges = load(folder)
    widths = [x.shape[1]] + [hidden] * (n_layers - 1) + [int(labels.max()) + 1]
    layers, apply, version = {"pyg": pyg_layers, "dgl": dgl_layers}[system](widths, edges, len(x))
    model = torch.nn.ModuleList(layers + [torch.nn.LayerNorm(width) for width in widths[1:-1]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train = (split == 1) & (labels >= 0)

    def forward(training):
        h = x
        for i, layer in enumerate(layers):
            h = apply(layer, h)
            if i + 1 < n_layers:
                h = torch.nn.functional.dropout(model[n_layers + i](h).relu(), 0.5, training)
        return h

    steps = []
    for _ in range(epochs):
        begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(True)[train], labels[train]).backward()
        optimizer.step()
        steps.append(time.perf_counter() - begin)
    with torch.no_grad():
        right = forward(False).argmax(dim=1) == labels
    test = (split == 3) & (labels >= 0)
    return {"version": version, "steps": steps, "test_accuracy": right[test].double().mean().item()}


if __name__ == "__main__":
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the systems print goes to standard error
    warnings.simplefilter("ignore")
    try:
        told = main()
    except Exception as error:  # the parent reports whatever keeps a foreign package from working
        told = {"failed": f"{type(error).__name__}: {error}"}
    print(json.dumps(told), file=out, flush=True)
