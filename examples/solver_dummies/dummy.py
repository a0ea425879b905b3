# SPDX-License-Identifier: Apache-2.0
"""A solver dummy in Python: heat in a rod. Graft learns while the solver runs, and then takes its place.
    python3 dummy.py [LIBRARY]
"""
import sys

import graft
import numpy as np

N = 42  # number of points of the rod, including its ends


def solve(u):
    u[1:-1] = u[1:-1] + 0.4 * (u[:-2] - 2 * u[1:-1] + u[2:])


x = np.arange(N) / (N - 1.0)
u = 4 * x * (1 - x)
context = graft.Context(library=sys.argv[1] if len(sys.argv) > 1 else None)
mesh = graft.Mesh(x, np.array([np.arange(N - 1), np.arange(1, N)]).T, "line", context=context)  # ranks=: graft.Ranks
network = graft.Network(mesh, 1, 1, {"hidden": 16, "layers": 2, "lr": 0.003},
                        is_free=(x > 0) & (x < 1))
stream = graft.Stream(network)
for step in range(1, 301):
    stream.offer(u, time=step)
    status = stream.step(1000, 1)  # trains for at most a second, and at most one step
    solve(u)
exact = u.copy()
for step in range(10):
    network.begin(u)  # the solver may compute between these two
    network.end(u)
    solve(exact)
total, apart = 0.0, 0.0
for one, other in zip(u.tolist(), exact.tolist()):
    total, apart = total + one, apart + (one - other) * (one - other)
print(f"loss {status['loss']:.6e} error {apart:.6e} sum {total:.17g}")
