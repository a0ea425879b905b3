# SPDX-License-Identifier: Apache-2.0
"""Writes a small data set as files, for tests of programs that train on it."""
import os
import random
import struct

N_CLASSES, N_EACH, N_FEATURES = 3, 100, 8
N = N_CLASSES * N_EACH


def write_npy(path, descr, code, shape, values):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))


def make_dataset(folder, with_split=True):
    """Make a graph of three communities. The features of one vertex say little about its class, but those of all its
    neighbours together say much. A GNN therefore learns more than a multilayer perceptron."""
    rng = random.Random(5)
    labels = [v % N_CLASSES for v in range(N)]
    edges = set()
    for v in range(N):
        for _ in range(5):
            near = rng.random() < 0.95
            u = rng.randrange(N_EACH) * N_CLASSES + labels[v] if near else rng.randrange(N)
            if u != v:
                edges |= {(u, v), (v, u)}
    edges = sorted(edges)
    features = [rng.gauss(1.5 if f == labels[v] else 0, 1) for v in range(N) for f in range(N_FEATURES)]
    os.mkdir(folder)
    write_npy(f"{folder}/edges.npy", "<i4", "i", (2, len(edges)), [e[0] for e in edges] + [e[1] for e in edges])
    write_npy(f"{folder}/features.npy", "<f4", "f", (N, N_FEATURES), features)
    write_npy(f"{folder}/labels.npy", "<i4", "i", (N,), labels)
    split = [rng.choice((1, 2, 3)) for _ in range(N)]
    if with_split:
        write_npy(f"{folder}/split.npy", "|u1", "B", (N,), split)
    return labels, split, len(edges)
