# SPDX-License-Identifier: Apache-2.0
"""Checks meshes, networks and online training from Python. The forward pass is compared with plain NumPy."""
import threading

import graft
import numpy as np
import pytest

SIDE = 9
OPTIONS = {"hidden": 8, "layers": 2, "mgn.linear": 2, "model.type": "f64", "lr": 1e-2, "mgn.schedule": "constant:10",
           "seed": 3}


def grid(side=SIDE):
    """Make points and triangles of a square."""
    i, j = (axis.reshape(-1) for axis in np.meshgrid(np.arange(side), np.arange(side)))
    k, m = (axis.reshape(-1) for axis in np.meshgrid(np.arange(side - 1), np.arange(side - 1)))
    at = m * side + k
    triangles = np.concatenate([np.stack([at, at + 1, at + side + 1], 1), np.stack([at, at + side + 1, at + side], 1)])
    return np.stack([i, j], 1) / (side - 1.0), triangles.astype(np.int32)


def smooth(points, t):
    return np.stack([np.sin(3 * points[:, 0] + t), np.cos(2 * points[:, 1] - t)], 1)


@pytest.fixture
def points_and_network():
    points, triangles = grid()
    free = ((points > 0) & (points < 1)).all(1)
    return points, graft.Network(graft.Mesh(points, triangles), 2, 2, OPTIONS, is_free=free)


def test_a_result_that_does_not_fit(points_and_network):
    points, network = points_and_network
    x = smooth(points, 0)
    for out, words in [(np.zeros((81, 3)), "81 x 3"), (np.zeros((80, 2)), "80 x 2"), (np.zeros((81, 2), int), "int64"),
                       (np.zeros((81, 2))[::-1], "positive multiples of 8"),
                       (np.frombuffer(bytes(1296)).reshape(81, 2), "is read-only"),
                       (np.broadcast_to(0.0, (81, 2)), "positive multiples")]:
        with pytest.raises(graft.ArgumentError, match=words):
            network(x, out)
        assert np.array_equal(network(x), network(x, np.zeros((81, 2))))  # no inference is left unfinished
    network.begin(x)
    network.drop()
    with pytest.raises(graft.StateError):
        network.end()


def mlp(state, name, x):
    for linear in (0, 1):
        x = (np.maximum(x, 0) if linear else x) @ state[f"{name}.{linear}.weight"].T + state[f"{name}.{linear}.bias"]
    if name + ".norm.weight" in state:
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        x = x * state[name + ".norm.weight"] + state[name + ".norm.bias"]
    return x


def change(state, points, triangles, x):
    """Compute the prediction of a network without statistics of nodes."""
    pairs = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), 1), axis=0)
    source, target = np.concatenate([pairs, pairs[:, ::-1]]).T
    offset = points[source] - points[target]
    r = np.concatenate([offset, np.linalg.norm(offset, axis=1, keepdims=True)], 1)
    h, e = mlp(state, "node_encoder", x), mlp(state, "edge_encoder", (r - r.mean(0)) / r.std(0))
    for layer in (0, 1):
        u = mlp(state, f"layers.{layer}.edge", np.concatenate([h[source], h[target], e], 1))
        m = np.zeros_like(h)
        np.add.at(m, target, u)
        h, e = h + mlp(state, f"layers.{layer}.node", np.concatenate([h, m], 1)), e + u
    return mlp(state, "decoder", h)


def test_mesh():
    points, triangles = grid()
    mesh = graft.Mesh(points, triangles)
    pairs = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), 1), axis=0)
    assert (mesh.info()["n_nodes"], mesh.info()["n_edges"]) == (SIDE ** 2, 2 * len(pairs))
    both = np.concatenate([pairs, pairs[:, ::-1]]).T
    assert graft.Mesh(points, edges=tuple(both)).info()["n_edges"] == 2 * len(pairs)
    with pytest.raises(graft.FormatError, match="cell 3"):
        graft.Mesh(points, np.where(np.arange(len(triangles))[:, None] == 3, 1000, triangles))
    with pytest.raises(graft.ArgumentError, match="expected one of line, triangle"):
        graft.Mesh(points, triangles, "circle")


def mixed():
    """Make a square with quadrilaterals in one half and triangles in the other, and return the edges of both."""
    points, triangles = grid()
    lower = points[triangles].mean(1)[:, 1] < 0.5
    at = np.arange((SIDE - 1) * (SIDE - 1) // 2)
    at = at // (SIDE - 1) * SIDE + at % (SIDE - 1)
    quads = np.stack([at, at + 1, at + SIDE + 1, at + SIDE], 1)
    cells = np.concatenate([quads.reshape(-1), triangles[~lower].reshape(-1)])
    types = ["quad"] * len(quads) + ["triangle"] * int((~lower).sum())
    sides = np.concatenate([quads[:, [[0, 1], [1, 2], [2, 3], [3, 0]]].reshape(-1, 2),
                            triangles[~lower][:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)])
    return points, cells, types, np.unique(np.concatenate([sides, sides[:, ::-1]]), axis=0)


@pytest.mark.parametrize("numbers", [False, True, "uint8"])
def test_mixed_cells(numbers):
    points, cells, types, edges = mixed()
    if numbers:
        types = np.array([{"quad": 9, "triangle": 5}[word] for word in types], numbers if numbers != 1 else int)
    view = graft.Mesh(points, cells, cell_types=types).view()
    found = np.stack([view["source"], np.repeat(np.arange(81), np.diff(view["row_ptr"]))], 1)
    assert len(edges) < graft.Mesh(*grid()).info()["n_edges"] and np.array_equal(np.unique(found, axis=0), edges)
    assert len(found) == len(edges)


@pytest.mark.parametrize("change, words", [
    (dict(cells=mixed()[1][:-1]), "cells has 319 nodes, expected 320, those of the 96 cells"),
    (dict(cells=grid()[1]), r"shape \(128, 3\), expected .any."),
    (dict(cell_types=["triangle"]), "expected 3, those of the 1 cells"),
    (dict(cell_types=["triangle", "circle"]), "cell_types is 'circle', expected one of line"),
    (dict(cell_types=[5, 9, 7]), r"cell_types.2. is 7, expected one of 3 .line."),
    (dict(cell_types=[5.5]), "float64"), (dict(cell_types=[[5]]), r"\(1, 1\)"),
    (dict(cells=None, edges=([0], [1])), "cells or edges"),
    (dict(cell_types=[]), "expected 0, those of the 0 cells")])
def test_mixed_cells_that_do_not_fit(change, words):
    points, cells, types, _ = mixed()
    with pytest.raises(graft.ArgumentError, match=words):
        graft.Mesh(points, **{**dict(cells=cells, cell_types=types), **change})


def test_view():
    points, triangles = grid()
    mesh = graft.Mesh(points, triangles, ids=7 * np.arange(81))
    view = mesh.view()
    mesh.close()  # the arrays are copies, so they stay valid
    assert np.array_equal(view["id"][view["node_of"]], 7 * np.arange(81))
    assert np.array_equal(view["node_of"][view["row_of"]], np.arange(81))
    assert np.array_equal(view["position"][view["node_of"]], points)
    assert (view["node_weight"] == 1).all() and (view["edge_ranks"] == 1).all()
    assert view["row_ptr"][-1] == len(view["source"]) == 2 * 208 and view["halo_node"].shape == (0,)
    assert np.array_equal(view["halo_start"], [0, 0])


def test_ensemble(points_and_network):
    points, first = points_and_network
    others = [graft.Network(first.mesh, 2, 2, {**OPTIONS, "seed": seed}, is_free=None) for seed in (4, 5)]
    x = smooth(points, 0)
    mean, deviation = graft.Network.ensemble([first, *others], x)
    each = np.stack([network(x) for network in (first, *others)])
    np.testing.assert_allclose(mean, each.mean(0), rtol=0, atol=1e-14)
    np.testing.assert_allclose(deviation, each.std(0), rtol=0, atol=1e-14)
    assert deviation.max() > 1e-3
    with pytest.raises(graft.ArgumentError, match="at least one"):
        graft.Network.ensemble([], x)
    with pytest.raises(graft.ArgumentError, match="80 x 2"):
        graft.Network.ensemble([first], x[:80])


@pytest.mark.parametrize("change, kind, words", [
    (dict(cells=grid()[1][:, :2]), graft.ArgumentError, r"shape \(128, 2\), expected .any, 3."),
    (dict(cells=grid()[1] / 2), graft.ArgumentError, "float64, expected integers"),
    (dict(cell_type="tetra"), graft.ArgumentError, "expected .any, 4."),
    (dict(edges=([0], [1])), graft.ArgumentError, "cells or edges"),
    (dict(cells=None, edges=([0, 1], [1])), graft.ArgumentError, "same length"),
    (dict(ids=np.arange(4)), graft.ArgumentError, r"ids has shape \(4,\), expected .81."),
    (dict(ids=-np.arange(81)), graft.FormatError, "-1"),
    (dict(period=[1, 1, 1, 1]), graft.ArgumentError, "period has 4 elements"),
    (dict(owners=np.zeros(3)), graft.ArgumentError, r"\(3,\)"),
    (dict(coordinates=np.full((81, 2), np.nan)), graft.FormatError, "finite"),
    (dict(coordinates=np.zeros((81, 4))), graft.ArgumentError, "4")])
def test_arrays_that_do_not_fit(change, kind, words):
    with pytest.raises(kind, match=words):
        graft.Mesh(**{**dict(coordinates=grid()[0], cells=grid()[1]), **change})


@pytest.mark.parametrize("dtype", ["int16", "uint32", "int64", ">i4"])
def test_types_of_integers(dtype):
    points, triangles = grid()
    edges = graft.Mesh(points, triangles).info()["n_edges"]
    assert graft.Mesh(points, triangles.astype(dtype), ids=np.arange(81).astype(dtype)).info()["n_edges"] == edges


def test_forward(points_and_network):
    points, net = points_and_network
    x, free = smooth(points, 0.0), ((points > 0) & (points < 1)).all(1)
    expected = x + np.where(free[:, None], change(net.state(), points, grid()[1], x), 0)
    np.testing.assert_allclose(net(x), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(net(np.asfortranarray(x)), net(x))
    state = net.rollout(x, 3)
    np.testing.assert_array_equal(state, net(net(net(x))))


def test_times():
    points, triangles = grid()
    mesh = graft.Mesh(points, triangles)
    network = graft.Network(mesh, 2, 2, OPTIONS | {"profile": "yes"})
    network.train((smooth(points, 0), smooth(points, 0.1)))
    for backward in False, True:
        whole, ends, *layers = (network.times(layer, backward) for layer in (-2, -1, 0, 1))
        assert whole["seconds"] >= ends["seconds"] + layers[0]["seconds"] + layers[1]["seconds"] > 0
        assert all(times["edges"] > 0 and times["nodes"] > 0 and times["bytes_sent"] == 0 for times in layers)
    assert "backward layer 1" in network.explain()
    with pytest.raises(graft.StateError, match="profile"):
        graft.Network(mesh, 2, 2, OPTIONS | {"profile": "no"}).times()


def test_rollout_callback(points_and_network):
    points, net = points_and_network
    steps = []
    net.rollout(smooth(points, 0.0), 4, lambda state, step: steps.append((step, state.shape)))
    assert steps == [(step, (SIDE ** 2, 2)) for step in (1, 2, 3, 4)]
    with pytest.raises(graft.CancelledError):
        net.rollout(smooth(points, 0.0), 4, lambda state, step: step == 2)
    with pytest.raises(ZeroDivisionError):
        net.rollout(smooth(points, 0.0), 4, lambda state, step: 1 // 0)


def test_training_and_files(points_and_network, tmp_path):
    points, net = points_and_network
    pair = smooth(points, 0.0), smooth(points, 0.1)
    losses = [net.train(pair)["loss"] for _ in range(300)]
    assert losses[-1] < 0.2 * losses[0]
    net.save(tmp_path / "net.safetensors")
    other = graft.Network(graft.Mesh(*grid()), 2, 2, {**OPTIONS, "seed": 8},
                          is_free=((points > 0) & (points < 1)).all(1))
    other.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(other(smooth(points, 7.0)), net(smooth(points, 7.0)))
    other.set_state({"decoder.1.bias": np.array([5.0, 6.0])})
    assert other.state()["decoder.1.bias"].tolist() == [5.0, 6.0]


def test_small_changes():
    """A network of floats must learn changes of doubles that are smaller than the spacing of floats near the values."""
    points, triangles = grid()
    free = ((points > 0) & (points < 1)).all(1)
    net = graft.Network(graft.Mesh(points, triangles), 2, 2, {**OPTIONS, "model.type": "f32"}, is_free=free)
    x = 1e5 + smooth(points, 0.0)
    y = x + 1e-4 * smooth(points, 2.0)
    net.train((x, y))
    state = net.state()
    deviation = np.sqrt(state["statistics.output.squares"] / state["statistics.output.count"])
    np.testing.assert_allclose(deviation, (y - x)[free].std(0), rtol=1e-6)


def test_stream(points_and_network):
    points, net = points_and_network
    stream = graft.Stream(net, {"stream.memory": 1, "stream.lag": 1, "stream.holdout": 5})
    assert stream.step(50.0)["reason"] == "no_pairs"
    for step in range(30):
        stream.offer(smooth(points, 0.1 * step), time=0.1 * step, first=step == 0)
    status = stream.step(1e4, max_steps=7)
    assert (status["steps_now"], status["reason"], status["offered"]) == (7, "steps_done", 30)
    nothing = stream.step(0.0)
    assert status["loss"] > 0 and nothing["steps_now"] == 0 and np.isnan([nothing["loss"], nothing["best"]]).all()
    assert stream.validate()["validation"] > 0
    with pytest.raises(graft.NonfiniteError):
        stream.offer(np.full((SIDE ** 2, 2), np.nan))
    assert stream.status()["offered"] == 30


def test_ranks():
    """Two ranks, which are threads with a strip of cells each, must predict the same as one process."""
    points, triangles = grid()
    whole = graft.Network(graft.Mesh(points, triangles), 2, 2, OPTIONS)
    expected, found = whole(smooth(points, 0.0)), {}

    def run(ranks):
        mine = triangles[(points[triangles[:, 0], 1] < 0.5) == (ranks.rank == 0)]
        rows, cells = np.unique(mine, return_inverse=True)
        mesh = graft.Mesh(points[rows], cells.reshape(-1, 3).astype(np.int32), ids=rows, kind="shared", ranks=ranks)
        view = mesh.view()
        shared = np.abs(points[rows, 1] - 0.5) < 1e-9
        assert np.array_equal(view["node_weight"][view["node_of"]], np.where(shared, 0.5, 1))
        assert set(view["edge_ranks"]) == {1, 2} and len(view["halo_start"]) == 3
        net = graft.Network(mesh, 2, 2, OPTIONS)
        found[ranks.rank] = rows, net(smooth(points[rows], 0.0))
        net.close()
        mesh.close()
        ranks.close()

    threads = [threading.Thread(target=run, args=(ranks,)) for ranks in graft.Ranks.threads(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rows, values in found.values():
        np.testing.assert_allclose(values, expected[rows], rtol=0, atol=1e-12)
