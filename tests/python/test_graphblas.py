# SPDX-License-Identifier: Apache-2.0
"""Matrices of python-graphblas: lent without a copy, and whole again after the call."""
import graft
import numpy as np
import pytest

gb = pytest.importorskip("graphblas", reason="there is no graphblas (python-graphblas)")
draw = np.random.default_rng(5)


def random_matrix(m=40, k=30, dtype="FP32"):
    dense = np.where(draw.random((m, k)) < 0.15, draw.integers(1, 9, (m, k)), 0)
    rows, columns = np.nonzero(dense)
    return gb.Matrix.from_coo(rows, columns, dense[rows, columns], nrows=m, ncols=k, dtype=dtype), dense


@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_a_product_is_that_of_graphblas(dtype):
    a, dense = random_matrix(dtype=dtype)
    x = gb.Matrix.from_dense(draw.normal(size=(30, 7)).astype("f4" if dtype == "FP32" else "f8"))
    before, x_before = a.dup(), x.dup()
    c = graft.aggregate(a, x)
    expected = a.mxm(x, gb.semiring.plus_times).new()
    assert isinstance(c, gb.Matrix) and c.dtype == dtype and c.nvals == 40 * 7
    np.testing.assert_allclose(c.to_dense(), expected.to_dense(0), rtol=1e-5, atol=1e-5)
    assert a.isequal(before, check_dtype=True) and x.isequal(x_before, check_dtype=True)
    out = np.zeros((40, 7), x.dtype.np_type)
    assert graft.aggregate(a, x, out=out) is out
    np.testing.assert_array_equal(out, c.to_dense())
    np.testing.assert_array_equal(graft.aggregate(graft.Matrix(a), x).to_dense(), c.to_dense())
    array = x.to_dense()
    np.testing.assert_array_equal(graft.aggregate(a, array), c.to_dense())


def test_nothing_is_copied(monkeypatch):
    a, _ = random_matrix()
    x = gb.Matrix.from_dense(draw.normal(size=(30, 64)).astype(np.float32))

    def places(matrix, format):
        parts = matrix.ss.unpack(format)
        found = {name: array.ctypes.data for name, array in parts.items() if isinstance(array, np.ndarray)}
        getattr(matrix.ss, "pack_" + format)(**parts, take_ownership=True)
        return found

    seen, view = [], graft.arrays.Csr.view
    monkeypatch.setattr(graft.arrays.Csr, "view",
                        lambda self: seen.append([one.ctypes.data for one in (self.indptr, self.indices, self.values)])
                        or view(self))
    before = places(a, "csr"), places(x, "fullr")
    graft.aggregate(a, x)
    assert seen == [[before[0][name] for name in ("indptr", "col_indices", "values")]]
    assert (places(a, "csr"), places(x, "fullr")) == before


def test_patterns_and_values_that_are_all_the_same():
    for value, dtype in ((True, "BOOL"), (1, "INT64"), (3, "INT64"), (2.5, "FP32")):
        a, dense = random_matrix()
        same = gb.Matrix.from_coo(*np.nonzero(dense), value, nrows=40, ncols=30, dtype=dtype)
        x = draw.normal(size=(30, 3)).astype(np.float32)
        np.testing.assert_allclose(graft.aggregate(same, x), float(value) * (dense != 0) @ x, rtol=1e-4, atol=1e-5)
        assert same.nvals == (dense != 0).sum()


def test_matrices_come_back_after_an_error():
    a, _ = random_matrix()
    x = gb.Matrix.from_dense(np.ones((29, 3), np.float32))
    before = a.dup()
    with pytest.raises(graft.ArgumentError, match="shapes do not fit"):
        graft.aggregate(a, x)
    assert a.isequal(before) and x.nvals == 29 * 3
    sparse, _ = random_matrix(30, 3)
    with pytest.raises(graft.ArgumentError, match="expected all 90"):
        graft.aggregate(a, sparse)
    with pytest.raises(graft.ArgumentError, match="cannot be lent twice"):
        graft.aggregate(a, a)
    assert a.isequal(before)
