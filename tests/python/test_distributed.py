# SPDX-License-Identifier: Apache-2.0
"""Checks graphs over ranks from Python: products, halos and updates of values, compared with NumPy."""
import threading

import graft
import numpy as np
import pytest

N, WIDTH = 60, 3


def matrix_of(seed=1, dtype="float64"):
    """Make rows with repeated and missing entries. The result is (indptr, indices, values, shape), and the same
    matrix as a full array."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(0, 9, N)
    indices = draw.integers(0, N, lengths.sum()).astype(np.int32)
    values, full = draw.normal(size=len(indices)).astype(dtype), np.zeros((N, N))
    np.add.at(full, (np.repeat(np.arange(N), lengths), indices), values)
    return (np.concatenate([[0], np.cumsum(lengths)]), indices, values, (N, N)), full


def slice_of(matrix, first, end):
    indptr, indices, values, _ = matrix
    entries = slice(indptr[first], indptr[end])
    return (indptr[first:end + 1] - indptr[first], indices[entries], values[entries], (end - first, N)), entries


def over_ranks(n_ranks, body, **options):
    """Call body(ranks, first, end) on every rank, and raise the first exception."""
    raised = []

    def run(ranks):
        try:
            for key, value in options.items():
                ranks.context[key.replace("_", ".")] = value
            body(ranks, N * ranks.rank // n_ranks, N * (ranks.rank + 1) // n_ranks)
        except BaseException as error:
            raised.append(error)
        ranks.close()

    threads = [threading.Thread(target=run, args=[ranks]) for ranks in graft.Ranks.threads(n_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if raised:
        raise raised[0]


@pytest.mark.parametrize("n_ranks, partition", [(1, "given"), (3, "hash"), (4, "given")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_and_new_values(n_ranks, partition, dtype):
    matrix, full = matrix_of(dtype=dtype)
    x, near = np.random.default_rng(5).normal(size=(N, WIDTH)).astype(dtype), dict(rtol=0, atol=1e-4)

    def body(ranks, first, end):
        rows, entries = slice_of(matrix, first, end)
        graph = graft.Graph(ranks, rows, first_row=first)
        plan = graft.Plan(graph, transposed=True)
        owned = graph.owned()
        mine = graph.redistribute(x[first:end])
        assert np.array_equal(mine, x[owned]) and np.array_equal(graph.redistribute(mine, "slices"), x[first:end])
        np.testing.assert_allclose(plan(mine), (full @ x)[owned], **near)
        plan.begin(mine, transpose=True)
        while not plan.progress():
            pass
        np.testing.assert_allclose(plan.end(), (full.T @ x)[owned], **near)
        out = np.ones((len(owned), WIDTH), dtype)
        assert plan(mine, out, accumulate=True, exact=True) is out
        np.testing.assert_allclose(out, 1 + (full @ x)[owned], **near)
        graph.update_values(-2 * matrix[2][entries])
        np.testing.assert_allclose(plan(mine[:, 0]), (-2 * full @ x)[owned, 0], **near)
        np.testing.assert_allclose(plan(mine, transpose=True), (-2 * full.T @ x)[owned], **near)
        assert plan.info(ranks.rank)["passes"] == 5 and "rank" in plan.explain() + graph.explain()
        assert graph.info()["n_edges"] == len(matrix[1])
        plan.close()
        graph.close()

    over_ranks(n_ranks, body, partition=partition)


def test_halo():
    matrix, full = matrix_of()
    x = np.random.default_rng(5).normal(size=(N, WIDTH))

    def body(ranks, first, end):
        rows, entries = slice_of(matrix, first, end)
        graph = graft.Graph(ranks, rows, first_row=first, owner=np.arange(first, end) % 3)
        halo = graft.Halo(graph)
        owned, info = graph.owned(), halo.info()
        assert np.array_equal(owned, np.arange(ranks.rank, N, 3)) and set(info["neighbour"]) <= {0, 1, 2} - {ranks.rank}
        rows = halo.exchange(x[owned])
        assert np.array_equal(rows, x[info["vertex"]])
        local = graft.Matrix(halo.matrix())
        np.testing.assert_allclose(graft.aggregate(local, np.concatenate([x[owned], rows])), (full @ x)[owned],
                                   rtol=0, atol=1e-12)
        graph.update_values(3 * matrix[2][entries])
        np.testing.assert_allclose(graft.aggregate(halo.matrix(), np.concatenate([x[owned], rows])),
                                   (3 * full @ x)[owned], rtol=0, atol=1e-12)
        sums = np.zeros((len(owned), 1))
        halo.begin_sum(sums, np.ones(len(info["vertex"])))
        while not halo.progress():
            pass
        halo.end()
        assert sums.sum() == len(info["send_row"]) and np.array_equal(np.bincount(info["send_row"], None, len(owned)),
                                                                      sums[:, 0])
        assert halo.info()["passes"] == 2
        halo.close()
        graph.close()

    over_ranks(3, body)


def test_mistakes():
    matrix, _ = matrix_of()
    graph = graft.Graph(None, matrix)
    plan, x = graft.Plan(graph), np.ones((N, WIDTH))
    with pytest.raises(graft.ArgumentError, match="5 x 1 values, expected .* x 1"):
        graph.update_values(np.ones(5))
    with pytest.raises(graft.FormatError, match="not finite"):
        graph.update_values(np.full(len(matrix[1]), np.nan))
    with pytest.raises(graft.ArgumentError, match="without values"):
        graft.Graph(None, (*matrix[:2], None, (N, N))).update_values(np.ones(len(matrix[1])))
    for change, words in [(dict(x=x[1:]), "x has 59 rows, expected"), (dict(semiring="plus"), "expected one of plus"),
                          (dict(transposed=True), "flag 'transposed' is unknown, expected some of"),
                          (dict(out=np.ones((N, 2))), "2"), (dict(out=np.ones((N, WIDTH), int)), "has type int64")]:
        with pytest.raises(graft.ArgumentError, match=words):
            plan.begin(**{**dict(x=x), **change})
    with pytest.raises(graft.StateError):
        plan.end()
    with pytest.raises(graft.StateError, match="TRANSPOSED"):
        plan(x, transpose=True)
    for change, words in [(dict(x=x[1:]), "expected 60 rows"), (dict(to="ranks"), "expected one of owners"),
                          (dict(x=np.array([None] * N)), "without objects")]:
        with pytest.raises(graft.ArgumentError, match=words):
            graph.redistribute(**{**dict(x=x), **change})
