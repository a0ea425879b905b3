# SPDX-License-Identifier: Apache-2.0
"""Checks samplers from Python: blocks are compared with the graph by plain NumPy, and illegal arguments must be
refused."""
import os
import threading

import graft
import numpy as np
import pytest

N = 200


def graph_of(seed=3):
    """Make a graph (indptr, indices, None, shape) with rows of 0 to 11 different vertices."""
    draw = np.random.default_rng(seed)
    rows = [np.sort(draw.choice(N, draw.integers(0, 12), replace=False)) for _ in range(N)]
    return np.cumsum([0] + [len(row) for row in rows]), np.concatenate(rows).astype(np.int32), None, (N, N)


GRAPH = graph_of()
DEGREES = np.diff(GRAPH[0])
TARGETS = np.repeat(np.arange(N), DEGREES)  # the target of each entry
SEEDS = np.arange(0, N, 3)


def destinations(block):
    """The destination of each edge."""
    return np.repeat(np.arange(block.n_dst), np.diff(block.indptr))


def check_blocks(batch):
    """Check what holds for every batch: its numbers are positions in `vertices`, and each edge is an edge of the
    graph."""
    assert len(np.unique(batch.vertices)) == len(batch.vertices) == batch.blocks[0].n_src
    assert batch.blocks[-1].n_dst == batch.n_seeds == len(batch.seeds)
    for block, later in zip(batch.blocks, batch.blocks[1:]):
        assert block.n_dst == later.n_src
    for block in batch.blocks:
        assert block.n_dst <= block.n_src and len(block.indptr) == block.n_dst + 1 and block.indptr[0] == 0
        assert block.indptr[-1] == block.n_edges == len(block.entries)
        np.testing.assert_array_equal(GRAPH[1][block.entries], batch.vertices[block.indices])
        np.testing.assert_array_equal(TARGETS[block.entries], batch.vertices[destinations(block)])
        np.testing.assert_array_equal(block.edge_index(), [block.indices, destinations(block)])


def arrays_of(batch):
    """All arrays that a batch has."""
    found = [batch.vertices, batch.weights]
    for block in batch.blocks:
        found += [block.indptr, block.indices, block.entries, block.weights]
    return [one for one in found if one is not None]


def same(one, other):
    pairs = list(zip(map(arrays_of, one), map(arrays_of, other), strict=True))
    return all(np.array_equal(a, b) for x, y in pairs for a, b in zip(x, y, strict=True))


def test_blocks_of_neighbours():
    fanout = [5, 3]
    sampler = graft.Sampler(GRAPH, SEEDS, fanout=fanout, layers=2, batch_size=16)
    assert len(sampler) == 5 and sampler.n_seeds == len(SEEDS)
    orders = []
    for epoch in range(2):
        batches = list(sampler)
        assert [(one.epoch, one.index) for one in batches] == [(epoch, i) for i in range(5)]
        for batch in batches:
            check_blocks(batch)
            assert batch.weights is None and batch.blocks[0].weights is None
            for block, most in zip(batch.blocks, fanout):
                degrees = DEGREES[batch.vertices[:block.n_dst]]
                np.testing.assert_array_equal(np.diff(block.indptr), np.minimum(degrees, most))
                assert len(np.unique(block.entries)) == block.n_edges
        orders.append(np.concatenate([one.seeds for one in batches]))
        np.testing.assert_array_equal(np.sort(orders[-1]), SEEDS)
    assert not np.array_equal(*orders)


def test_replacement_and_weights_of_edges():
    values = (np.arange(len(TARGETS)) % 3).astype(np.float32)  # entries of value 0 are never drawn
    graph = (*GRAPH[:2], values, GRAPH[3])
    sampler = graft.Sampler(graph, None, {"sampler": "neighbour:replace", "sample.weights": "edge"}, fanout=7, layers=1,
                            batch_size=50)
    drawable = np.bincount(TARGETS, values > 0, N)
    drawn = np.zeros(len(TARGETS))
    for epoch in range(60):
        for batch in sampler.epoch(epoch):
            check_blocks(batch)
            block, = batch.blocks
            np.testing.assert_array_equal(np.diff(block.indptr), np.where(drawable[batch.seeds] > 0, 7, 0))
            drawn += np.bincount(block.entries, minlength=len(drawn))
    assert not drawn[values == 0].any()
    share = values / np.maximum(np.bincount(TARGETS, values, N), 1)[TARGETS]
    deviation = np.sqrt(420 * share * (1 - share))
    assert (np.abs(drawn - 420 * share) <= 5 * deviation + 1e-6).all()


def test_batches_have_the_same_bits():
    options = {"fanout": [4, 4], "layers": 2, "batch_size": 10}
    first = list(graft.Sampler(GRAPH, SEEDS, options, threads=1))
    for more in ({"threads": 2}, {"threads": 2, "sample.ahead": 3}):
        assert same(first, graft.Sampler(GRAPH, SEEDS, options | more))
    assert not same(first, graft.Sampler(GRAPH, SEEDS, options, seed=8))
    sampler = graft.Sampler(GRAPH, SEEDS, options | {"sample.ahead": 4})
    assert not same(first, sampler.epoch(1))
    assert same(first, sampler.epoch(0, workers=2))
    assert same(first[3:], sampler.epoch(0, first=3))
    assert [batch.epoch for batch in sampler] == [1] * 7
    for _ in sampler.epoch(workers=2):
        break  # this ends the threads of the sampler
    assert not [one for one in threading.enumerate() if one.name.startswith("graft.Sampler")]


def test_batches_made_ahead():
    sampler = graft.Sampler(GRAPH, SEEDS, {"sample.ahead": 3}, fanout=4, layers=2, batch_size=10)
    expected = list(sampler.epoch(0))
    batches = sampler.epoch(0)
    made = []
    workers = [threading.Thread(target=lambda: made.append(sampler.prefetch())) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(made) == 3 and not sampler.prefetch()
    assert same(expected, batches)


@pytest.mark.parametrize("options", [{"sampler": "cluster:12"},
                                     {"sampler": "saint:2"}])
def test_subgraphs(options):
    sampler = graft.Sampler(GRAPH, SEEDS, options, layers=2, batch_size=20)
    batches = list(sampler)
    for batch in batches:
        check_blocks(batch)
        chosen = np.zeros(N, bool)
        chosen[batch.vertices] = True
        inside = np.flatnonzero(chosen[TARGETS] & chosen[GRAPH[1]])
        of_seeds = np.zeros(N, bool)
        of_seeds[batch.seeds] = True
        np.testing.assert_array_equal(np.sort(batch.blocks[0].entries), inside)
        np.testing.assert_array_equal(np.sort(batch.blocks[1].entries), inside[of_seeds[TARGETS[inside]]])
        np.testing.assert_array_equal(np.sort(batch.seeds), np.intersect1d(batch.vertices, SEEDS))
    seen = np.concatenate([batch.seeds for batch in batches])
    np.testing.assert_array_equal(np.unique(seen) if options["sampler"] == "saint:2" else np.sort(seen), SEEDS)


def test_weights_of_saint():
    """Sums with the weights must estimate the sums over all seeds, and over all edges."""
    sampler = graft.Sampler(GRAPH, None, None, sampler="saint:2:200", layers=1,
                            batch_size=50)
    feature = 1 + np.arange(N) % 7
    sums, rows, times = [], np.zeros(N), np.zeros(N)
    for epoch in range(60):
        for batch in sampler.epoch(epoch):
            block, = batch.blocks
            assert batch.weights.shape == batch.vertices.shape and block.weights.shape == block.indices.shape
            sums.append((batch.weights * feature[batch.vertices])[:batch.n_seeds].sum())
            gathered = block.weights * feature[batch.vertices[block.indices]]
            rows[batch.seeds] += np.bincount(destinations(block), gathered, block.n_dst)
            times[batch.seeds] += 1
    deviation = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - feature.sum()) < 4.5 * deviation + 0.01 * feature.sum()
    exact = np.bincount(TARGETS, feature[GRAPH[1]], N)
    assert abs((rows / times).sum() / exact.sum() - 1) < 0.03
    assert sampler.sample([1, 2]).weights is None


def test_weights_of_layers():
    """The sources of a block are its destinations and `fanout` other vertices. Weighted sums must estimate the sums
    over all edges."""
    sampler = graft.Sampler(GRAPH, SEEDS, {"sampler": "ladies"}, fanout=[25, 10], layers=2, batch_size=20)
    feature = 1 + np.arange(N) % 7
    rows, times = np.zeros(N), np.zeros(N)
    for epoch in range(100):
        for batch in sampler.epoch(epoch):
            check_blocks(batch)
            assert batch.weights is None
            for block, fanout in zip(batch.blocks, [25, 10]):
                assert block.n_src - block.n_dst == fanout and block.weights.min() >= 1
            gathered = block.weights * feature[batch.vertices[block.indices]]
            rows[batch.seeds] += np.bincount(destinations(block), gathered, block.n_dst)
            times[batch.seeds] += 1
    exact = np.bincount(TARGETS, feature[GRAPH[1]], N)
    assert abs((rows[SEEDS] / times[SEEDS]).sum() / exact[SEEDS].sum() - 1) < 0.03


def cora():
    """Load the data set in the folder GRAFT_TEST_DATA, made symmetric, or return None."""
    folder = os.path.join(os.environ.get("GRAFT_TEST_DATA", ""), "cora")
    if not os.path.isdir(folder):
        return None
    sparse = pytest.importorskip("scipy.sparse")
    arrays = {name: np.load(os.path.join(folder, f"{name}.npy")) for name in ("edges", "labels", "split")}
    shape = np.load(os.path.join(folder, "features_csr_shape.npy"))
    features = sparse.csr_matrix(tuple(np.load(os.path.join(folder, f"features_csr_{part}.npy"))
                                       for part in ("data", "indices", "indptr")), shape=shape)
    edges = arrays["edges"] if arrays["edges"].shape[0] == 2 else arrays["edges"].T
    both = np.concatenate([edges, edges[::-1]], axis=1)
    adjacency = sparse.csr_matrix((np.ones(both.shape[1], np.float32), both), shape=(shape[0], shape[0]))
    adjacency.data[:] = 1
    return graft.Dataset(adjacency, features.astype(np.float32).toarray(), arrays["labels"].astype(np.int32),
                         arrays["split"].astype(np.uint8))


def test_accuracy_of_layers():
    """Layer-wise sampling trains about as well as neighbour sampling."""
    dataset = cora()
    if dataset is None:
        pytest.skip("GRAFT_TEST_DATA has no folder cora")
    accuracy = {}
    for sampler, fanout in (("neighbour", 5), ("ladies", 400)):
        found = []
        for seed in (1, 2):
            with graft.Trainer(dataset, sampler=sampler, fanout=fanout, batch_size=70, epochs=8, hidden=32, layers=2,
                               seed=seed) as trainer:
                trainer.fit(progress=False)
                found.append(trainer.evaluate()["test_accuracy"])
        accuracy[sampler] = np.mean(found)
    assert accuracy["neighbour"] > 0.6 and accuracy["ladies"] > accuracy["neighbour"] - 0.04, accuracy


def test_other_threads_run_and_can_cancel():
    """create() computes for seconds here. Another thread can cancel it only if create() lets other threads run."""
    context, ended = graft.Context(), []

    def create():
        try:
            graft.Sampler(GRAPH, None, None, sampler="saint:30:10000", layers=1,
                          batch_size=1, context=context)
        except graft.Error as error:
            ended.append(type(error))

    creator = threading.Thread(target=create)
    creator.start()
    creator.join(0.3)
    context.cancel()
    creator.join(60)
    assert ended == [graft.CancelledError]


def test_batches_of_given_seeds():
    sampler = graft.Sampler(GRAPH, [], fanout=2, layers=2)
    assert len(sampler) == 0 and list(sampler) == []
    for seeds in ([7, 5, 9], np.isin(np.arange(N), [5, 7, 9])):
        batch = sampler.sample(seeds)
        check_blocks(batch)
        assert batch.index == -1 and sorted(batch.seeds) == [5, 7, 9]
        assert np.diff(batch.blocks[1].indptr).max() <= 2
    whole = sampler.sample([7, 5, 9], all=True)
    check_blocks(whole)
    for block in whole.blocks:
        np.testing.assert_array_equal(np.diff(block.indptr), DEGREES[whole.vertices[:block.n_dst]])
    kept = whole.vertices.copy()
    sampler.close()
    np.testing.assert_array_equal(whole.vertices, kept)  # batches live longer than the sampler
    alone = int(np.flatnonzero(DEGREES == 0)[0])
    empty = graft.Sampler(GRAPH, layers=1).sample([alone]).blocks[0]
    assert (empty.n_dst, empty.n_src, empty.n_edges) == (1, 1, 0)


def test_an_epoch_goes_on_after_a_given_batch():
    sampler = graft.Sampler(GRAPH, SEEDS, fanout=3, layers=1, batch_size=20)
    expected, found = list(sampler.epoch(0)), []
    for batch in sampler.epoch(0):
        sampler.sample([1])
        found.append(batch)
    assert same(expected, found)


def test_graphs_and_default_seeds(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix((np.ones(len(TARGETS), np.float32), GRAPH[1], GRAPH[0]), shape=(N, N))
    edges = np.stack([GRAPH[1], TARGETS])
    np.save(tmp_path / "edges.npy", edges.astype(np.int32))
    np.save(tmp_path / "features.npy", np.ones((N, 1), np.float32))

    expected = list(graft.Sampler(GRAPH, fanout=3, layers=2, batch_size=70))
    np.testing.assert_array_equal(np.sort(np.concatenate([one.seeds for one in expected])), np.arange(N))
    for graph in (matrix, graft.Matrix(GRAPH), graft.Matrix.from_edges(*edges, (N, N)), graft.Dataset(GRAPH)):
        assert same(expected, graft.Sampler(graph, fanout=3, layers=2, batch_size=70))
    split = np.zeros(N, np.uint8)
    split[SEEDS] = 1
    data = graft.Dataset(GRAPH, split=split)
    assert same(graft.Sampler(data, layers=1), graft.Sampler(tmp_path, SEEDS, layers=1))


def test_pytorch_takes_blocks():
    """Compare a mean over sampled neighbours and its gradient by graft.torch with index_add_ of PyTorch."""
    torch = pytest.importorskip("torch", reason="there is no torch")

    class Data:  # the members of torch_geometric.data.Data
        num_nodes, edge_index = N, torch.from_numpy(np.stack([GRAPH[1].astype(np.int64), TARGETS]))

    x, seeds = torch.randn(N, 3, requires_grad=True), torch.from_numpy(SEEDS)
    for batch in graft.Sampler(Data, seeds, fanout=[4, 2], layers=2, batch_size=30):
        check_blocks(batch)
        h, ours = (x[torch.from_numpy(batch.vertices)] for _ in range(2))
        for block in batch.blocks:
            ours = graft.torch.aggregate(graft.Matrix(block.csr), ours, row_scale="mean")
            sources, targets = torch.from_numpy(block.edge_index())
            counts = torch.bincount(targets, minlength=block.n_dst).clamp(min=1)
            h = torch.zeros(block.n_dst, 3).index_add_(0, targets, h[sources]) / counts[:, None]
        torch.testing.assert_close(ours, h)
        torch.testing.assert_close(*(torch.autograd.grad(one.square().sum(), x)[0] for one in (ours, h)))


def test_blocks_are_matrices():
    """Compare a mean over sampled neighbours by graft.aggregate with NumPy."""
    x = np.random.default_rng(1).normal(size=(N, 4)).astype(np.float32)
    batch = next(iter(graft.Sampler(GRAPH, SEEDS, fanout=4, layers=1, batch_size=30)))
    block, = batch.blocks
    means = graft.aggregate(graft.Matrix(block.csr), x[batch.vertices], row_scale="mean")
    for i in range(block.n_dst):
        row = x[GRAPH[1][block.entries[block.indptr[i]:block.indptr[i + 1]]]]
        np.testing.assert_allclose(means[i], row.mean(0) if len(row) else 0, rtol=1e-5, atol=1e-6)


def test_misuse_is_a_sentence():
    for seeds, options, kind, words in [
            ([3, 3], {}, graft.ArgumentError, "3"), ([N], {}, graft.ArgumentError, f"{N}"),
            (np.arange(N + 1), {}, graft.ArgumentError, f"{N + 1}"),
            ([0.5], {}, graft.ArgumentError, "seeds has type float64"),
            ([[1]], {}, graft.ArgumentError, "2 dimensions"),
            (np.ones(3, bool), {}, graft.ArgumentError, r"seeds has shape \(3,\)"),
            ([1], {"fanout": [1, 2, 3], "layers": 2}, graft.OptionError, "fanout"),
            ([1], {"batch_size": 2}, graft.OptionError, "batch_size"),
            ([1], {"fanouts": 2}, graft.OptionError, "fanout"),
            ([1], {"sample.weights": "edge"}, graft.OptionError, "value")]:
        with pytest.raises(kind, match=words):
            graft.Sampler(GRAPH, seeds, options)
    with pytest.raises(graft.ArgumentError, match="square"):
        graft.Sampler((np.zeros(3, np.int32), np.zeros(0, np.int32), None, (2, 3)))
    with pytest.raises(graft.ArgumentError, match="expected a scipy.sparse matrix"):
        graft.Sampler("no such folder".split())
    sampler = graft.Sampler(GRAPH, SEEDS, batch_size=20, layers=1)
    for number, first in ((-1, 0), (0, 9)):
        with pytest.raises(graft.ArgumentError):
            sampler.epoch(number, first)
    for seeds in ([], [-1], [4, 4]):
        with pytest.raises(graft.ArgumentError):
            sampler.sample(seeds)
    older = iter(sampler)
    next(older)
    assert next(iter(sampler)).index == 0
    with pytest.raises(graft.StateError, match="another epoch"):
        next(older)
    newest = iter(sampler)
    assert "batches" in sampler.explain() and "67 seeds" in repr(sampler)
    with sampler:
        pass
    sampler.close()
    for call in (lambda: next(newest), lambda: sampler.sample([1]), sampler.prefetch, sampler.explain, sampler.epoch):
        with pytest.raises(graft.StateError, match="closed"):
            call()
