#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the errors of rollouts of a network on a mesh (graft_network.h) with those of the same model in PyTorch,
after the same number of training steps.

There are two cases, both on a mesh of triangles whose nodes are randomly perturbed. In `advection` a constant flow
transports a Gaussian through a periodic square, and the exact solution is known. In `heat` a sum of Gaussians diffuses
between walls of fixed temperature, computed with implicit Euler steps and linear finite elements. Both systems learn
the change during one step from trajectories with random initial states. They begin with the same weights, and use the
same pairs in the same order and the same noise.

The program prints the training time and the RMSE over the free nodes on test trajectories: after 1 step, after 50
steps, and over all steps of a rollout. "no change" predicts the initial state. The trained network also computes these
rollouts on ranks that own strips of the mesh, with halo rows of 32 bits and of 8 bits. The last line is the ratio Graft
/ PyTorch.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RATE_END, WARMUP = 1e-5, 100


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="advection, heat (default: both)")
    parser.add_argument("--nodes", type=int, default=400, metavar="N", help="default: %(default)s")
    parser.add_argument("--width", type=int, default=32, metavar="N", help="default: %(default)s")
    parser.add_argument("--train", type=int, metavar="STEPS", help="default: 3000 for advection, 40000 for heat")
    parser.add_argument("--rollout", type=int, default=200, metavar="STEPS", help="default: %(default)s")
    parser.add_argument("--trajectories", type=int, default=20, metavar="N", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="default: all processors")
    parser.add_argument("--type", choices=["f32", "f64"], default="f32",
                        help="of both systems; in floats they part after some hundred steps (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=4, metavar="N",
                        help="of rollouts with messages in 32 and in 8 bits (default: %(default)s)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="more options of Graft")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the one that has torch")
    options = parser.parse_args()
    options.cases = options.cases or ["advection", "heat"]
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}; expected {', '.join(CASES)}")
    return options


def triangulate(n, periodic, seed=1):
    """Returns the randomly perturbed points of a grid in the unit square, two triangles for each grid cell, and a mask
    of the interior points. In a periodic grid the last column is joined to the first one, and all points are
    interior."""
    side = round(n ** 0.5)
    step = 1 / (side if periodic else side - 1)
    i, j = (axis.reshape(-1) for axis in np.meshgrid(np.arange(side), np.arange(side)))
    points = np.stack([i, j], 1) * step
    inside = np.full(len(points), True) if periodic else (i > 0) & (j > 0) & (i < side - 1) & (j < side - 1)
    points[inside] += np.random.default_rng(seed).uniform(-0.15, 0.15, (inside.sum(), 2)) * step
    last = side if periodic else side - 1
    i, j = (axis.reshape(-1) for axis in np.meshgrid(np.arange(last), np.arange(last)))
    corner = lambda di, dj: (j + dj) % side * side + (i + di) % side
    triangles = np.concatenate([np.stack([corner(0, 0), corner(1, 0), corner(1, 1)], 1),
                                np.stack([corner(0, 0), corner(1, 1), corner(0, 1)], 1)])
    return points, triangles.astype(np.int32), inside


def advection(points, triangles, inside, steps, seed):
    """Returns states [steps + 1, n, 1] of a Gaussian in a constant flow through a periodic square. The flow crosses the
    square in 200 steps."""
    draw = np.random.default_rng(seed)
    centre, width = draw.uniform(0, 1, 2), draw.uniform(0.1, 0.15)
    moved = centre + np.arange(steps + 1)[:, None] * [1 / 200, 0.5 / 200]
    offset = points[None] - moved[:, None]
    offset -= np.round(offset)
    return np.exp(-(offset ** 2).sum(2) / (2 * width ** 2))[:, :, None]


def heat(points, triangles, inside, steps, seed):
    """Returns states of three diffusing Gaussians, by implicit Euler steps with linear elements and a lumped mass
    matrix."""
    from scipy.sparse import coo_matrix, diags
    from scipy.sparse.linalg import splu
    draw, n = np.random.default_rng(seed), len(points)
    corner = points[triangles]
    edge = corner[:, [2, 0, 1]] - corner[:, [1, 2, 0]]
    area = np.abs(edge[:, 0, 0] * edge[:, 1, 1] - edge[:, 0, 1] * edge[:, 1, 0]) / 2
    local = np.einsum("tid,tjd->tij", edge, edge) / (4 * area)[:, None, None]
    rows, columns = np.repeat(triangles, 3, 1).reshape(-1), np.tile(triangles, (1, 3)).reshape(-1)
    stiffness = coo_matrix((local.reshape(-1), (rows, columns)), (n, n)).tocsr()
    mass = np.bincount(triangles.reshape(-1), np.repeat(area / 3, 3), n)
    free = inside.astype(float)
    solve = splu((diags(mass) + 1e-4 * diags(free) @ stiffness).tocsc())
    u = np.zeros(n)
    for _ in range(3):
        centre, width = draw.uniform(0.2, 0.8, 2), draw.uniform(0.1, 0.2)
        u += draw.uniform(-1, 1) * np.exp(-((points - centre) ** 2).sum(1) / (2 * width ** 2))
    states = [u]
    for _ in range(steps):
        states.append(solve.solve(mass * states[-1]))
    return np.array(states)[:, :, None]


# Diffusion depends on second differences, which are much smaller than first differences. LayerNorm conceals them, so
# heat trains without it.
CASES = {
    "advection": {"make": advection, "layers": 4, "linear": 3, "norm": True, "activation": "relu", "rate": 1e-3,
                  "train": 3000},
    "heat": {"make": heat, "layers": 2, "linear": 2, "norm": False, "activation": "elu", "rate": 3e-3,
             "train": 40000},
}


def prepare(options, case):
    """Returns the mesh, the trajectories for training and for tests, the constant inputs, and the standard deviation of
    the noise."""
    points, triangles, inside = triangulate(options.nodes, case == "advection")
    make = lambda seed, steps: CASES[case]["make"](points, triangles, inside, steps, seed)
    train = np.array([make(seed, options.rollout) for seed in range(options.trajectories)])
    test = np.array([make(1000 + seed, options.rollout) for seed in range(5)])
    constant = np.stack([inside, ~inside], 1).astype(float)
    noise = 0.03 * np.sqrt(np.mean(np.diff(train, axis=1)[:, :, inside] ** 2))
    return {"points": points, "triangles": triangles, "inside": inside, "train": train, "test": test,
            "constant": constant, "noise": noise, "period": [1.0, 1.0] if case == "advection" else [0.0, 0.0]}


def draw_pair(data, draw):
    """Returns an input with noise on the free nodes, and its target. The target is the change from the noisy input to
    the exact next state, so that the network learns to correct the noise."""
    trajectory, step = draw.integers(len(data["train"])), draw.integers(data["train"].shape[1] - 1)
    noise = draw.normal(0, data["noise"], data["train"].shape[2:]) * data["inside"][:, None]
    return data["train"][trajectory, step] + noise, data["train"][trajectory, step + 1]


def no_change(data):
    return errors(data, np.repeat(data["test"][:, :1], data["test"].shape[1], 1))


def errors(data, rollouts):
    """Returns the RMSE after 1 step, after 50 steps, and over all steps of `rollouts` [trajectories, steps + 1, n,
    1]."""
    squares = ((rollouts - data["test"]) ** 2)[:, :, data["inside"]].mean((0, 2, 3))
    return [float(np.sqrt(squares[1])), float(np.sqrt(squares[50])), float(np.sqrt(squares[1:].mean()))]


def steps_of(options, case):
    return options.train or CASES[case]["train"]


def settings(options, case):
    model = CASES[case]
    return {"hidden": options.width, "layers": model["layers"], "mgn.linear": model["linear"],
            "norm": model["norm"], "activation": model["activation"], "mgn.noise": 0, "lr": model["rate"],
            "mgn.schedule": f"cosine:{steps_of(options, case)}:{RATE_END}:{WARMUP}", "weight_decay": 0,
            "model.type": options.type, **dict(word.split("=", 1) for word in options.set)}


def run_graft(options, case, data, seed, path):
    """Train with Graft. Returns the errors and the training time. Writes the initial weights to `path` for PyTorch."""
    import graft
    mesh = graft.Mesh(data["points"], data["triangles"], period=data["period"], threads=options.threads, seed=seed)
    net = graft.Network(mesh, 1, 1, settings(options, case), predicts="change", constant=data["constant"],
                        is_free=data["inside"])
    np.savez(path, **net.state())
    draw, begin, found = np.random.default_rng(seed), time.perf_counter(), []
    for _ in range(steps_of(options, case)):
        net.train(draw_pair(data, draw))
    seconds = time.perf_counter() - begin
    for truth in data["test"]:
        states = [truth[0]]
        net.rollout(truth[0].copy(), options.rollout, lambda state, _: states.append(state.copy()))
        found.append(states)
    net.save(path + ".safetensors")
    return [seconds] + errors(data, np.array(found))


def run_ranks(options, case, data, path, codec):
    """Returns the errors of the trained network on ranks, which are threads here and own strips of the mesh, and the
    bytes that a rank sends in a step."""
    import graft
    owner = np.minimum((data["points"][:, 0] * options.ranks).astype(np.int32), options.ranks - 1)
    states = np.zeros((len(data["test"]), options.rollout + 1) + data["test"].shape[2:])
    states[:, 0], sent = data["test"][:, 0], [0] * options.ranks

    def run(ranks):
        cells = data["triangles"][(owner[data["triangles"]] == ranks.rank).any(1)]
        rows, cells = np.unique(cells, return_inverse=True)
        mesh = graft.Mesh(data["points"][rows], cells.reshape(-1, 3).astype(np.int32), ids=rows, owners=owner[rows],
                          period=data["period"], ranks=ranks, threads=1)
        net = graft.Network(mesh, 1, 1, {**settings(options, case), "halo.codec": codec}, predicts="change",
                            constant=data["constant"][rows], is_free=data["inside"][rows])
        net.load(path + ".safetensors")
        own = owner[rows] == ranks.rank
        for run, truth in zip(states, data["test"]):
            def keep(state, step):
                run[step][rows[own]] = state[own]
            net.rollout(truth[0][rows].copy(), options.rollout, keep)
        sent[ranks.rank] = net.info()["bytes_sent"]
        net.close()
        mesh.close()
        ranks.close()

    threads = [threading.Thread(target=run, args=(ranks,)) for ranks in graft.Ranks.threads(options.ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [float(sum(sent))] + errors(data, states)


def run_torch(options, case, seed, path):
    command = [options.python, os.path.abspath(__file__).replace("rollout.py", "rollout_worker.py"), case, path,
               json.dumps({**vars(options), "seed": seed})]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    environment["PYTHONPATH"] = os.pathsep.join([HERE, os.path.join(ROOT, "tests", "harness")])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return json.loads(done.stdout)


def report(case, options, rows):
    print(f"{case:10s} {'':12s} {'training s':>10s} {'1 step':>10s} {'50 steps':>10s} {'all':>10s}")
    for name in ("Graft", "PyTorch", "no change"):
        columns = rows[name]
        print(f"{'':10s} {name:12s} " + " ".join(f"{statistics.mean(column):10.3g}" for column in zip(*columns)))
    ratios = [statistics.mean(q8) / statistics.mean(f32) for f32, q8 in zip(zip(*rows["f32"]), zip(*rows["q8"]))]
    print(f"{'':10s} {options.ranks} ranks, messages in 8 bits / in 32 bits: bytes {ratios[0]:.3f}, errors "
          + " ".join(f"{ratio:.3f}" for ratio in ratios[1:]))
    pairs = zip(zip(*rows["Graft"]), zip(*rows["PyTorch"]))
    ratios = [statistics.mean(ours) / statistics.mean(theirs) for ours, theirs in pairs]
    print(f"{'':10s} {'ratio':12s} " + " ".join(f"{ratio:10.3f}" for ratio in ratios), flush=True)


def main():
    options = arguments()
    for case in options.cases:
        data = prepare(options, case)
        rows = {"Graft": [], "PyTorch": [], "f32": [], "q8": [], "no change": [[0.0] + no_change(data)]}
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "weights.npz")
                rows["Graft"].append(run_graft(options, case, data, seed, path))
                rows["PyTorch"].append(run_torch(options, case, seed, path))
                for codec in ("f32", "q8"):
                    rows[codec].append(run_ranks(options, case, data, path, codec))
        report(case, options, rows)


if __name__ == "__main__":
    main()
