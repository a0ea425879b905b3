# SPDX-License-Identifier: Apache-2.0
"""Checks matrices of python-graphblas: they must be read in place, by several threads at once, and never be changed."""
import os
import subprocess
import sys
import threading
import warnings

import graft
import numpy as np
import pytest
from graft import arrays

gb = pytest.importorskip("graphblas", reason="there is no graphblas (python-graphblas)")
pytestmark = pytest.mark.usefixtures("no_warning_was_given")
draw = np.random.default_rng(5)


def random_matrix(m=40, k=30, dtype="FP32"):
    dense = np.where(draw.random((m, k)) < 0.15, draw.integers(1, 9, (m, k)), 0)
    rows, columns = np.nonzero(dense)
    return gb.Matrix.from_coo(rows, columns, dense[rows, columns], nrows=m, ncols=k, dtype=dtype), dense


def random_full(k=30, n=7, dtype="f4"):
    return gb.Matrix.from_dense(draw.normal(size=(k, n)).astype(dtype))


@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_a_product_is_that_of_graphblas(dtype):
    a, dense = random_matrix(dtype=dtype)
    x = random_full(dtype="f4" if dtype == "FP32" else "f8")
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
    x = random_full(n=64)

    def places(matrix, format):
        parts = matrix.ss.unpack(format)
        found = {name: array.ctypes.data for name, array in parts.items() if isinstance(array, np.ndarray)}
        getattr(matrix.ss, "pack_" + format)(**parts, take_ownership=True)
        return found

    seen, view, view_dense = [], arrays.Csr.view, arrays.view_dense
    monkeypatch.setattr(arrays.Csr, "view",
                        lambda self: seen.append([one.ctypes.data for one in (self.indptr, self.indices, self.values)])
                        or view(self))
    monkeypatch.setattr(arrays, "view_dense", lambda x, *more: seen.append(x.ctypes.data) or view_dense(x, *more))
    before = places(a, "csr"), places(x, "fullr")
    graft.aggregate(a, x)
    assert seen[:2] == [[before[0][name] for name in ("indptr", "col_indices", "values")], before[1]["values"]]
    assert (places(a, "csr"), places(x, "fullr")) == before


def test_threads_share_a_matrix():
    """Multiply in some threads while another thread only counts entries; some matrices have pending work."""
    a, dense = random_matrix(600, 400)
    x = random_full(400, 64)
    expected = dense @ x.to_dense()
    for i in range(20):
        a[i, i] << 1  # pending
        dense[i, i] = 1
    pending, expected = a, dense @ x.to_dense()
    wrong, counts, done = [], set(), threading.Event()

    def multiply():
        for _ in range(15):
            c = graft.aggregate(pending, x)
            if not np.allclose(c.to_dense(), expected, rtol=1e-3, atol=1e-3):
                wrong.append(c)

    def count():
        while not done.is_set():
            counts.add(x.nvals)

    workers, reader = [threading.Thread(target=multiply) for _ in range(3)], threading.Thread(target=count)
    for one in (*workers, reader):
        one.start()
    for one in workers:
        one.join()
    done.set()
    reader.join()
    assert not wrong and counts == {x.nvals} and x.nvals == 400 * 64 and a.nvals == (dense != 0).sum()


def held_otherwise():
    """Yield (matrix, format, reason of a copy) for all formats that Graft does not read."""
    a, dense = random_matrix()
    rows, columns = np.nonzero(dense)
    for format in ("csc", "hypercsr", "hypercsc", "bitmapr", "bitmapc"):
        parts = a.ss.export(format)
        yield getattr(gb.Matrix.ss, "import_" + format)(**parts), dense, format
    full = draw.integers(1, 5, (40, 30)).astype("f4")
    yield gb.Matrix.from_dense(full), full, "fullr"


def test_other_formats_are_copied_and_stay():
    x = random_full()
    for a, dense, format in held_otherwise():
        assert a.ss.format == format
        before = a.dup()
        arrays._warned.clear()
        reason = rf"A is held as {format} and is copied to csr: [0-9]+ bytes"
        with pytest.warns(graft.CopyWarning, match=reason) as seen:
            c = graft.aggregate(a, x)
        assert seen[0].filename == __file__
        np.testing.assert_allclose(c.to_dense(), dense @ x.to_dense(), rtol=1e-4, atol=1e-4)
        assert a.ss.format == format and a.isequal(before, check_dtype=True)
    a, dense = random_matrix()
    array = x.to_dense()
    by_column = gb.Matrix.ss.import_fullc(array)
    with pytest.warns(graft.CopyWarning, match="X is held as fullc and is copied to an array by row: 840 bytes"):
        c = graft.aggregate(a, by_column)
    np.testing.assert_allclose(c.to_dense(), dense @ array, rtol=1e-4, atol=1e-4)
    assert by_column.ss.format == "fullc" and by_column.nvals == 210


def test_a_bitmap_without_gaps_is_read_where_it_is():
    a, dense = random_matrix()
    array = random_full().to_dense()
    x = gb.Matrix.ss.import_bitmapr(values=array, bitmap=np.ones((30, 7), bool))
    if x.ss.format != "bitmapr":
        pytest.skip(f"GraphBLAS holds it as {x.ss.format}")
    np.testing.assert_allclose(graft.aggregate(a, x).to_dense(), dense @ array, rtol=1e-4, atol=1e-4)


def test_patterns_and_values_that_are_all_the_same():
    warnings.simplefilter("ignore", graft.CopyWarning)
    for value, dtype in ((True, "BOOL"), (1, "INT64"), (3, "INT64"), (2.5, "FP32")):
        a, dense = random_matrix()
        same = gb.Matrix.from_coo(*np.nonzero(dense), value, nrows=40, ncols=30, dtype=dtype)
        x = draw.normal(size=(30, 3)).astype(np.float32)
        np.testing.assert_allclose(graft.aggregate(same, x), float(value) * (dense != 0) @ x, rtol=1e-4, atol=1e-5)
        assert same.nvals == (dense != 0).sum()
    two = gb.Matrix("FP32", 30, 3)
    two[:, :] = 2
    np.testing.assert_allclose(graft.aggregate(a, two).to_dense(), 2 * dense.sum(1)[:, None].repeat(3, 1))
    np.testing.assert_array_equal(graft.aggregate(gb.Matrix("FP32", 40, 30), x), np.zeros((40, 3)))


def test_a_matrix_may_be_both_operands():
    square = draw.integers(0, 5, (12, 12)).astype("f4")
    a = gb.Matrix.from_dense(square)
    with pytest.warns(graft.CopyWarning, match="A is held as fullr"):
        np.testing.assert_allclose(graft.aggregate(a, a).to_dense(), square @ square)


def refused(sentence, kind=graft.ArgumentError, **arguments):
    a, _ = random_matrix()
    with pytest.raises(kind, match=sentence):
        graft.aggregate(**{"A": a, "X": random_full(), **arguments})


def test_what_is_refused():
    a, _ = random_matrix()
    before = a.dup()
    refused("shapes do not fit", A=a, X=random_full(29))
    refused("expected all 90", A=a, X=random_matrix(30, 3)[0])
    assert a.isequal(before)
    refused("mask is a graphblas.*Matrix, of which NumPy makes no array", mask=random_full())
    refused("X is a graphblas.*Vector, of which NumPy makes no array", X=gb.Vector.from_dense(np.ones(30, "f4")))
    refused("A is the transpose of a graphblas.Matrix", A=random_matrix(30, 40)[0].T)
    refused("A has type complex128", A=gb.Matrix.from_coo([0], [0], [1j], nrows=40, ncols=30))
    refused("X has type int64", X=gb.Matrix.from_dense(np.ones((30, 7), int) + np.eye(30, 7, dtype=int)))
    pair = gb.dtypes.register_anonymous(np.dtype([("x", "i4"), ("y", "i4")]))
    own = gb.Matrix(pair, 40, 30)
    own[0, 0] = (1, 2)
    refused("A has type void64, expected float32", A=own)
    a.ss.export("csr", give_ownership=True)
    refused("A cannot be read: GraphBLAS returns", graft.ModuleError, A=a)
    refused("there is no memory for a copy of it as csr", graft.OutOfMemoryError,
            A=gb.Matrix.from_coo([0], [0], [1.0], nrows=2**50, ncols=30))


UNCHANGED = """
import graphblas as gb, numpy as np
draw = np.random.default_rng(0)
dense = np.where(draw.random((300, 300)) < 0.1, draw.random((300, 300)), 0).astype("f4")
a = gb.Matrix.from_coo(*np.nonzero(dense), dense[np.nonzero(dense)], nrows=300, ncols=300, dtype="FP32")
x = draw.random((300, 64)).astype("f4")
c = a.mxm(gb.Matrix.from_dense(x), gb.semiring.plus_times).new()
np.testing.assert_allclose(c.to_dense(), dense @ x, rtol=1e-4)
"""


def test_an_unchanged_program_with_the_library_before_it():
    before = " ".join([os.environ.get("LD_PRELOAD", ""), graft.grb_library()]).strip()
    environment = {**os.environ, "LD_PRELOAD": before, "GRAFT_GRB": "summary"}
    told = subprocess.run([sys.executable, "-c", UNCHANGED], check=True, stderr=subprocess.PIPE, text=True,
                          env=environment).stderr
    assert "graft-grb: 1 products taken" in told
