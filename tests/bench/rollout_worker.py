# SPDX-License-Identifier: Apache-2.0
"""Trains with PyTorch for rollout.py, in its own process: rollout_worker.py CASE WEIGHTS.npz OPTIONS

Trains the model of mgn_torch.py with the given initial weights and the pairs of rollout.py, and prints the errors as
JSON. The rest of the training is implemented here independently of Graft: statistics that are updated in each step, the
loss over the free nodes, and AdamW with a linear warm-up and cosine decay of the learning rate."""
import argparse
import json
import math
import sys
import time

import mgn_torch
import numpy as np
import rollout
import torch


class Statistics:
    """The running mean and standard deviation of all values that were added."""

    def __init__(self, columns):
        self.count, self.sum, self.squares = 0.0, np.zeros(columns), np.zeros(columns)

    def add(self, x):
        self.count, self.sum, self.squares = self.count + len(x), self.sum + x.sum(0), self.squares + (x * x).sum(0)

    def mean(self):
        return self.sum / self.count

    def deviation(self):
        return np.maximum(np.sqrt(np.maximum(self.squares / self.count - self.mean() ** 2, 0)), 1e-8)

    def standardise(self, x):
        return (x - self.mean()) / self.deviation()


def tensor(x):
    return torch.tensor(x, dtype=torch.get_default_dtype())


def edges_of(data):
    """Returns the sources and targets of the edges, and their standardised features. Each side of a triangle is an edge
    in both directions."""
    t = data["triangles"]
    pairs = np.unique(np.sort(np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]]), 1), axis=0)
    source, target = np.concatenate([pairs, pairs[:, ::-1]]).T
    offset = data["points"][source] - data["points"][target]
    for column, period in enumerate(data["period"]):
        if period:
            offset[:, column] -= period * np.round(offset[:, column] / period)
    features = np.concatenate([offset, np.linalg.norm(offset, axis=1, keepdims=True)], 1)
    known = Statistics(features.shape[1])
    known.add(features)
    tensors = [torch.from_numpy(np.ascontiguousarray(x)) for x in (source, target)]
    return [*tensors, tensor(known.standardise(features))]


def rate(highest, step, total):
    """Returns the learning rate of step number `step`, which counts from 0."""
    if step < rollout.WARMUP:
        return highest * (step + 1) / rollout.WARMUP
    part = min((step - rollout.WARMUP) / max(total - rollout.WARMUP, 1), 1)
    return rollout.RATE_END + (highest - rollout.RATE_END) * (1 + math.cos(math.pi * part)) / 2


class Model:
    def __init__(self, case, width, data, weights):
        self.case, self.data, self.source_target_edges = case, data, edges_of(data)
        self.net = mgn_torch.MGN(1 + data["constant"].shape[1], 3, 1, width, case["layers"], case["linear"],
                                 case["norm"], case["activation"], split=True)
        mgn_torch.load(self.net, weights)
        self.inputs, self.changes = Statistics(1), Statistics(1)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1, weight_decay=0)

    def outputs(self, state):
        source, target, edges = self.source_target_edges
        nodes = np.concatenate([self.inputs.standardise(state), self.data["constant"]], 1)
        return self.net(tensor(nodes), edges, source, target)

    def train(self, state, later, step, total):
        free = self.data["inside"]
        self.inputs.add(state)
        self.changes.add((later - state)[free])
        wanted = tensor(self.changes.standardise(later - state))
        loss = ((self.outputs(state) - wanted)[free] ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.param_groups[0]["lr"] = rate(self.case["rate"], step, total)
        self.optimizer.step()

    def rollout(self, state, steps):
        states, free = [state], self.data["inside"][:, None]
        with torch.no_grad():
            for _ in range(steps):
                change = self.outputs(states[-1]).numpy() * self.changes.deviation() + self.changes.mean()
                states.append(np.where(free, states[-1] + change, states[-1]))
        return states


def main():
    case, path, text = sys.argv[1:]
    options = argparse.Namespace(**json.loads(text))
    torch.set_num_threads(options.threads)
    torch.set_default_dtype({"f32": torch.float32, "f64": torch.float64}[options.type])
    data, total = rollout.prepare(options, case), rollout.steps_of(options, case)
    model = Model(rollout.CASES[case], options.width, data, dict(np.load(path)))
    draw, begin = np.random.default_rng(options.seed), time.perf_counter()
    for step in range(total):
        model.train(*rollout.draw_pair(data, draw), step, total)
    seconds = time.perf_counter() - begin
    found = [model.rollout(truth[0], options.rollout) for truth in data["test"]]
    print(json.dumps([seconds] + rollout.errors(data, np.array(found))))


if __name__ == "__main__":
    main()
