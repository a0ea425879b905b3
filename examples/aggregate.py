#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The smallest program with the Python package. It computes means over neighbours, and trains a model on them.
PYTHONPATH=$(pkg-config --variable=python graft) python3 aggregate.py"""
import graft
import numpy as np

# A path of four vertices, 0 - 1 - 2 - 3, and vertex 4 alone: row v holds the vertices that v gathers from.
path = (np.array([0, 1, 3, 5, 6, 6]), np.array([1, 0, 2, 1, 3, 2]), None, (5, 5))
features = np.array([[1, 10], [2, 20], [3, 30], [4, 40], [5, 50]], np.float32)

graph = graft.Matrix(path)
print("means over neighbours\n", graft.aggregate(graph, features, row_scale="mean"))
print("sums, of the transposed graph\n", graft.aggregate(graph.T, features))
try:
    graft.aggregate(graph, features[:4])
except graft.Error as error:
    print(f"{error.name}: {error}")

# Two communities. Most edges stay within one, and the features of a vertex alone say little about it.
draw, n = np.random.default_rng(1), 600
labels = np.arange(n) % 2
sources = np.where(draw.random(8 * n) < 0.9, draw.integers(0, n // 2, 8 * n) * 2 + np.repeat(labels, 8),
                   draw.integers(0, n, 8 * n))
noisy = (draw.normal(size=(n, 8)) + 0.3 * labels[:, None]).astype(np.float32)
data = graft.Dataset(graft.Matrix.from_edges(sources, np.repeat(np.arange(n), 8), (n, n)), noisy, labels,
                     split=draw.permutation(np.repeat([1, 2, 3], n // 3)))
for model in ("mlp", "sage"):
    run = graft.train(data, model=model, layers=2, hidden=16, epochs=60, progress=False)
    print(f"{model}: test accuracy {run.evaluate()['test_accuracy']:.3f} after {len(run.history)} epochs")
