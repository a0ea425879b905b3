# SPDX-License-Identifier: Apache-2.0
"""Trains with PyTorch Geometric for learning.py, in its own process:
learning_worker.py DATASET MODEL LAYERS HIDDEN THREADS EPOCH,... SEED,...

Trains the model with each seed, like epoch_worker.py. Prints {"version", "runs"} as JSON. Each run has the losses of
all epochs, and the test accuracies after the given epochs.
"""
import sys

import epoch_worker


def train(make, data, epochs):
    import torch
    x, labels, split, widths = data
    layers, apply, version = make()
    model, forward = epoch_worker.make_network(layers, apply, widths, x)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    in_loss = (split == 1) & (labels >= 0)
    losses, accuracies = [], []
    for epoch in range(1, max(epochs) + 1):
        losses.append(epoch_worker.step(forward, optimizer, labels, in_loss))
        if epoch in epochs:
            accuracies.append(epoch_worker.measure(forward, labels, split))
    return {"losses": losses, "accuracies": accuracies}, version


def main():
    import torch
    folder, kind = sys.argv[1:3]
    n_layers, hidden, threads = map(int, sys.argv[3:6])
    epochs, seeds = ([int(text) for text in argument.split(",")] for argument in sys.argv[6:])
    torch.set_num_threads(threads)
    x, labels, split, edges = epoch_worker.load(folder)
    widths = [x.shape[1]] + [hidden] * (n_layers - 1) + [int(labels.max()) + 1]
    runs = []
    for seed in seeds:
        torch.manual_seed(seed)
        run, version = train(lambda: epoch_worker.pyg_layers(widths, edges, len(x), kind),
                             (x, labels, split, widths), epochs)
        runs.append(run)
    return {"version": version, "runs": runs}


if __name__ == "__main__":
    epoch_worker.report(main)
