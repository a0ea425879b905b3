# SPDX-License-Identifier: Apache-2.0
"""Checks graft.aggregate against NumPy. It also checks that arrays are not copied unnecessarily, and which arguments
are refused."""
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import graft
import numpy as np
import pytest
from graft import arrays

pytestmark = pytest.mark.usefixtures("no_warning_was_given")
draw = np.random.default_rng(7)


def random_csr(m=60, k=50, index="int32", value="float32", density=0.1):
    """Make a random matrix (indptr, indices, values, shape) with empty rows."""
    dense = draw.random((m, k)) < density
    dense[::7] = False
    rows, columns = np.nonzero(dense)
    indptr = np.zeros(m + 1, index)
    indptr[1:] = np.cumsum(dense.sum(axis=1))
    return indptr, columns.astype(index), draw.normal(size=len(columns)).astype(value), (m, k)


def oracle(a, x, semiring):
    """Compute the product row by row, in double."""
    indptr, indices, values, (m, _) = a
    first, second = semiring.split("_")
    combine = {"plus": np.sum, "max": np.max, "min": np.min}[first]
    out = np.zeros((m, x.shape[1]))
    for v in range(m):
        entries = slice(indptr[v], indptr[v + 1])
        products = x[indices[entries]].astype(float)
        if second == "times" and values is not None:
            products = products * values[entries, None]
        if len(products):
            out[v] = combine(products, axis=0)
    return out


@pytest.mark.parametrize("semiring", graft.SEMIRINGS)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("value", ["float32", "float64"])
def test_every_semiring_and_type(semiring, index, value):
    a = random_csr(index=index, value=value)
    x = draw.normal(size=(50, 33)).astype(value)
    c = graft.aggregate(a, x, semiring)
    assert c.dtype == value and c.shape == (60, 33)
    np.testing.assert_allclose(c, oracle(a, x, semiring), rtol=1e-5, atol=1e-5)
    without = (*a[:2], None, a[3])
    np.testing.assert_allclose(graft.aggregate(without, x, semiring), oracle(without, x, semiring), rtol=1e-5,
                               atol=1e-5)


def test_a_scipy_matrix_is_lent():
    sparse = pytest.importorskip("scipy.sparse", reason="there is no SciPy (python3-scipy)")
    for index in (np.int32, np.int64):
        a = sparse.random(70, 40, 0.1, "csr", dtype=np.float32, random_state=1)
        a.indices, a.indptr = a.indices.astype(index), a.indptr.astype(index)
        x = draw.normal(size=(40, 5)).astype(np.float32)
        np.testing.assert_allclose(graft.aggregate(a, x), a @ x, rtol=1e-5, atol=1e-5)
        lent = graft.Matrix(a)._arrays
        for name, mine in (("indptr", lent.indptr), ("indices", lent.indices), ("data", lent.values)):
            assert np.shares_memory(mine, getattr(a, name)), name


def test_rows_with_gaps_are_not_copied():
    a, wide = random_csr(), draw.normal(size=(50, 100)).astype(np.float32)
    x, target = wide[:, 10:40], np.full((60, 90), 7, np.float32)
    out = target[:, 20:50]
    assert arrays.read_dense(x, "X") is x
    assert graft.aggregate(a, x, out=out) is out
    np.testing.assert_allclose(out, oracle(a, x, "plus_times"), rtol=1e-5, atol=1e-5)
    assert (target[:, :20] == 7).all() and (target[:, 50:] == 7).all()


def test_a_vector_is_a_column():
    a, x = random_csr(), draw.normal(size=50).astype(np.float32)
    c, out = graft.aggregate(a, x), np.empty(60, np.float32)
    assert c.shape == (60,) and graft.aggregate(a, x, out=out) is out
    np.testing.assert_allclose(c, oracle(a, x[:, None], "plus_times")[:, 0], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(c, out)


def test_transpose_scale_bias_and_relu():
    a, x = random_csr(), draw.normal(size=(50, 9)).astype(np.float32)
    matrix, dense = graft.Matrix(a), np.zeros((60, 50), np.float32)
    dense[np.repeat(np.arange(60), np.diff(a[0])), a[1]] = a[2]
    np.testing.assert_allclose(graft.aggregate(matrix.T, dense[:, :4].copy()), dense.T @ dense[:, :4], rtol=1e-4,
                               atol=1e-5)
    assert matrix.T.T is matrix and matrix.T is matrix.T
    degrees = np.diff(a[0])
    np.testing.assert_array_equal(matrix.degrees(), degrees)
    np.testing.assert_array_equal(matrix.T.degrees(), np.bincount(a[1], minlength=50))
    np.testing.assert_allclose(graft.aggregate(matrix, x, "plus_times", row_scale="mean"),
                               oracle(a, x, "plus_times") / np.maximum(degrees, 1)[:, None], rtol=1e-5, atol=1e-5)
    bias = draw.normal(size=9).astype(np.float32)
    np.testing.assert_allclose(graft.aggregate(matrix, x, bias=bias, relu=True),
                               np.maximum(oracle(a, x, "plus_times") + bias, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("accumulate", [False, True])
def test_masks(complement, replace, accumulate):
    a, x = random_csr(), draw.normal(size=(50, 21)).astype(np.float32)
    old = draw.normal(size=(60, 21)).astype(np.float32)
    z = oracle(a, x, "plus_times")
    rows, elements = draw.random(60) < 0.5, draw.random((60, 21)) < 0.5
    masks = [(rows, np.repeat(rows[:, None], 21, 1)), (elements, elements),
             (np.packbits(elements, axis=1, bitorder="little"), elements)]
    for mask, allowed in masks:
        out = old.copy()
        graft.aggregate(a, x, mask=mask, complement=complement, replace=replace, accumulate=accumulate, out=out)
        expected = np.where(allowed ^ complement, z + old if accumulate else z, 0 if replace else old)
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_winner():
    a, x = random_csr(), draw.normal(size=(50, 6)).astype(np.float32)
    winner = np.empty((60, 6), np.int32)
    c = graft.aggregate(a, x, "max_second", winner=winner)
    empty = np.diff(a[0]) == 0
    assert (winner[empty] == -1).all() and (winner[~empty] >= 0).all()
    np.testing.assert_array_equal(np.take_along_axis(x, winner[~empty], 0), c[~empty])


def test_edges_and_new_values():
    sources, targets = draw.integers(0, 30, 200), draw.integers(0, 40, 200)
    values = draw.normal(size=200).astype(np.float32)
    x, expected = draw.normal(size=(30, 4)).astype(np.float32), np.zeros((40, 4))
    np.add.at(expected, targets, values[:, None] * x[sources])
    matrix = graft.Matrix.from_edges(sources, targets, (40, 30), values)
    np.testing.assert_allclose(graft.aggregate(matrix, x), expected, rtol=1e-4, atol=1e-5)
    y, back = draw.normal(size=(40, 3)).astype(np.float32), graft.aggregate(matrix.T, np.ones((40, 1), np.float32))
    matrix.update_values(2 * matrix._arrays.values)
    np.testing.assert_allclose(graft.aggregate(matrix, x), 2 * expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(graft.aggregate(matrix.T, np.ones((40, 1), np.float32)), 2 * back, rtol=1e-5)
    assert graft.aggregate(matrix.T, y).shape == (30, 3)


def test_a_transpose_and_its_matrix_do_not_keep_each_other():
    gc.collect()
    gc.disable()
    try:
        matrix, x = graft.Matrix(random_csr()), draw.normal(size=(60, 4)).astype(np.float32)
        there, transpose = weakref.ref(matrix), matrix.T
        expected, degrees = graft.aggregate(transpose, x), matrix.degrees().copy()
        del matrix
        assert there() is None, "it went without the garbage collector"
        np.testing.assert_array_equal(graft.aggregate(transpose, x), expected)
        again = transpose.T
        assert again is transpose.T and again.T is transpose
        np.testing.assert_array_equal(again.degrees(), degrees)
        np.testing.assert_array_equal(transpose.degrees(), np.bincount(again._arrays.indices, minlength=50))
        again.update_values(2 * again._arrays.values)
        np.testing.assert_allclose(graft.aggregate(transpose, x), 2 * expected, rtol=1e-5)
        there = weakref.ref(transpose)
        del transpose, again
        assert there() is None
    finally:
        gc.enable()


def converted(reason, *arguments):
    """Check that a call warns once and not again."""
    arrays._warned.clear()
    with pytest.warns(graft.CopyWarning, match=reason):
        result = graft.aggregate(*arguments)
    graft.aggregate(*arguments)
    return result


def test_what_is_converted_with_one_warning():
    a, x = random_csr(), draw.normal(size=(50, 8)).astype(np.float32)
    expected = graft.aggregate(a, x)
    np.testing.assert_array_equal(converted("X has rows that are not contiguous", a, np.asfortranarray(x)), expected)
    np.testing.assert_array_equal(converted("X has rows that are not contiguous", a, x[:, ::-1])[:, ::-1], expected)
    np.testing.assert_array_equal(converted("X is big-endian", a, x.astype(">f4")), expected)
    half = x.astype(np.float16)
    np.testing.assert_array_equal(converted("X has type float16", a, half), graft.aggregate(a, half.astype("f4")))
    whole = (*a[:2], np.ones(len(a[1]), np.int64), a[3])
    np.testing.assert_allclose(converted("A.data has type int64", whole, x), oracle(whole, x, "plus_times"), rtol=1e-5,
                               atol=1e-5)
    np.testing.assert_array_equal(converted("A.indices is big-endian", (a[0], a[1].astype(">i4"), *a[2:]), x), expected)


def refused(sentence, kind=graft.ArgumentError, **arguments):
    a, x = random_csr(), draw.normal(size=(50, 8)).astype(np.float32)
    with pytest.raises(kind, match=sentence) as caught:
        graft.aggregate(**{"A": a, "X": x, **arguments})
    assert isinstance(caught.value, graft.Error) and caught.value.status == kind.status < 0
    return caught.value


def test_what_is_refused_by_name():
    read_only = np.zeros((60, 8), np.float32)
    read_only.flags.writeable = False
    refused("out is read-only", out=read_only)
    refused("out is big-endian", out=np.zeros((60, 8), ">f4"))
    refused("out has type float16, expected float32", out=np.zeros((60, 8), np.float16))
    refused("out is not contiguous", out=np.zeros((8, 60), np.float32).T)
    refused(r"out has shape \(59, 8\), expected \(60, 8\)", out=np.zeros((59, 8), np.float32))
    refused("out is a list", out=[[0.0] * 8] * 60)
    refused("X has type int64", X=np.ones((50, 8), np.int64))
    refused("X has type complex64", X=np.ones((50, 8), np.complex64))
    refused("X has 3 dimensions", X=np.ones((50, 8, 1), np.float32))
    refused("semiring is 'plus_plus', expected one of plus_times", semiring="plus_plus")
    refused("mask has type bool and shape", mask=np.ones((60, 9), bool))
    refused("row_scale has shape", row_scale=np.ones(59))
    refused("A is a builtins.str", A="graph.mtx")
    error = refused("shapes do not fit", X=np.ones((49, 8), np.float32))
    assert error.where == "graft.mxm/1 run" and error.name == "ERR_ARG"
    a = random_csr()
    assert isinstance(refused("row 59", graft.FormatError, A=(a[0], a[1] + 60 * (np.arange(len(a[1])) > len(a[1]) - 2),
                                                              *a[2:])), ValueError)
    refused("row_scale has type complex128", row_scale=np.ones(60, complex))
    refused("bias has type object", bias=np.array([None] * 8))
    refused(r"A has shape 3, expected two integers", A=(*a[:3], 3))
    refused(r"A has shape \(1.5, 3\), expected two integers", A=(*a[:3], (1.5, 3)))
    refused(r"A has shape \(-1, 3\), expected no negative number", A=(*a[:3], (-1, 3)))
    refused("A.data has 2 dimensions, expected a vector", A=(*a[:2], a[2][:, None], a[3]))
    refused("A.data has 0 dimensions, expected a vector", A=(*a[:2], np.float32(1), a[3]))
    for wrong, sentence in (("float16", "dtype is float16"), (np.int32, "dtype is int32"), ("odd", "dtype is odd")):
        with pytest.raises(graft.ArgumentError, match=sentence):
            graft.Matrix(a, dtype=wrong)
    matrix = graft.Matrix(a, dtype=np.float32)
    with pytest.raises(graft.ArgumentError, match="values has type complex64"):
        matrix.update_values(a[2].astype(np.complex64))
    with pytest.raises(graft.ArgumentError, match="was made without values"):
        graft.Matrix((*a[:2], None, a[3])).update_values(a[2])
    refused("indptr has 59 elements", A=(a[0][:-2], *a[1:]))
    refused("but indptr ends with", A=(a[0] + 1000, *a[1:]))


def test_a_failed_call_leaves_out_as_it_was():
    out = np.full((60, 8), 3, np.float32)
    refused("shapes do not fit", X=np.ones((49, 8), np.float32), out=out)
    assert (out == 3).all()


def test_a_context_has_options_modules_and_a_log():
    told = []
    with graft.Context({"mxm.kernel": "reference"}, threads=1, log=lambda level, text: told.append(text)) as context:
        assert context["mxm.kernel"] == "reference" and context["threads"] == "1"
        assert context.options()["mxm.kernel"]["source"] == "host"
        assert "simd" in [one["name"] for one in context.modules()]
        with pytest.raises(graft.OptionError, match="did you mean 'threads'"):
            context["treads"] = 2
        a = graft.Matrix(random_csr(), context=context)
        graft.aggregate(a, np.ones((50, 2), np.float32))
        assert a.explain().startswith("reference")
    assert any("matrix" in line for line in told), told  # the context was closed before its matrix
    with pytest.raises(graft.StateError):
        graft.aggregate(a, np.ones((50, 2), np.float32))
    del a


def test_threads_share_a_context_and_the_gil_is_free():
    n = 30000
    indptr = np.arange(0, 20 * n + 1, 20)
    a = graft.Matrix((indptr, draw.integers(0, n, 20 * n), None, (n, n)))
    x = draw.normal(size=(n, 64)).astype(np.float32)
    expected, results, ticks = graft.aggregate(a, x, "plus_second"), [], 0
    workers = [threading.Thread(target=lambda: results.append(graft.aggregate(a, x, "plus_second"))) for _ in range(4)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        ticks += 1
    assert len(results) == 4 and all((result == expected).all() for result in results)
    assert ticks > 100, "this thread stood still while others computed"


def test_a_child_process_gets_a_context_of_its_own():
    a, x = random_csr(), np.ones((50, 2), np.float32)
    matrix, expected = graft.Matrix(a), graft.aggregate(a, x)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            fine = (graft.aggregate(a, x) == expected).all()
            graft.aggregate(matrix, x)
        except graft.ForkedError as error:
            status = 0 if fine and error.status == -10 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(graft.aggregate(matrix, x), expected)


def test_a_child_process_does_not_wait_for_threads_that_it_does_not_have():
    n = 20000
    context = graft.Context()
    matrix = graft.Matrix((np.arange(0, 16 * n + 1, 16), np.arange(16 * n) * 7 % n, None, (n, n)), context=context)
    x, is_done = np.ones((n, 64), np.float32), threading.Event()

    def compute():
        while not is_done.is_set():
            graft.aggregate(matrix, x)

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        for _ in range(5):
            time.sleep(0.02)
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                try:
                    graft.aggregate(random_csr(), np.ones((50, 2), np.float32))
                    graft.aggregate(matrix, x)
                except graft.ForkedError:
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        is_done.set()
        thread.join()


def test_a_number_of_threads_that_is_refused():
    a, x = random_csr(), np.ones((50, 2), np.float32)
    for threads, text in ((2**40, "1099511627776"), ("2", "'2'"), (1.5, "1.5")):
        with pytest.raises(graft.ArgumentError, match=f"threads is {text}, expected an integer of 32 bits"):
            graft.aggregate(a, x, threads=threads)


def test_edges_that_are_refused():
    for arguments, sentence in ((([0, 1], [0], (2, 2)), "there are 2 sources and 1 targets"),
                                (([0, 1], [0, 2], (2, 2)), "targets are from 0 to 2, expected 0 to 1"),
                                (([-1, 1], [0, 1], (2, 2)), "sources are from -1 to 1, expected 0 to 1"),
                                (([0.5, 1], [0, 1], (2, 2)), "sources has type float64"),
                                (([0, 1], [0, 1], (2, 2), [1.0]), r"values have shape \(1,\), expected \(2,\)"),
                                (([0, 1], [0, 1], (2, 2), np.ones(3)), r"values have shape \(3,\), expected \(2,\)"),
                                (([0, 1], [0, 1], 2), "A has shape 2, expected two integers")):
        with pytest.raises(graft.ArgumentError, match=sentence):
            graft.Matrix.from_edges(*arguments)
    assert graft.Matrix.from_edges([], [], (2, 3)).shape == (2, 3)


def test_objects_are_freed_beside_calls_of_other_threads():
    told, n = [], 20000
    context = graft.Context(log=lambda level, text: told.append(text))
    large = graft.Matrix((np.arange(0, 20 * n + 1, 20), draw.integers(0, n, 20 * n), None, (n, n)), context=context)
    x, entered, failed = np.ones((n, 64), np.float32), threading.Event(), []

    def multiply():
        for _ in range(10):
            entered.set()
            try:
                graft.aggregate(large, x)
            except graft.Error as error:
                failed.append(error)

    worker = threading.Thread(target=multiply)
    worker.start()
    entered.wait()
    while worker.is_alive():
        graft.Matrix(random_csr(), context=context)
    worker.join()
    assert not failed and not told, told
    assert not context._to_free
    large.close()
    context.close()
    assert not told, told


def test_objects_are_freed_in_any_order():
    told = []
    context = graft.Context(log=lambda level, text: told.append(text))
    matrices = [graft.Matrix(random_csr(), context=context) for _ in range(3)]
    transposed = matrices[0].T
    del matrices[0]
    assert graft.aggregate(transposed, np.ones((60, 2), np.float32)).shape == (50, 2)
    matrices[0].close()
    matrices[0].close()
    with pytest.raises(graft.StateError):
        graft.aggregate(matrices[0], np.ones((50, 2), np.float32))
    del matrices, transposed
    gc.collect()
    context.close()
    assert not told  # no object was left


def test_a_library_that_is_not_there(tmp_path):
    with pytest.raises(graft.NotFoundError, match="cannot load the Graft library"):
        graft.Context(library=tmp_path / "libgraft.so")
    with pytest.raises(graft.VersionError, match="exports no graft_open"):
        graft.Context(library="libm.so.6")
    code = "import graft._library as l; l._HERE = '/none'; l._SONAME = 'libnone.so.1'\n" \
           "import graft\ntry: graft.Context()\nexcept graft.NotFoundError as error: print(error)"
    text = subprocess.run([sys.executable, "-c", "import os; os.environ.pop('GRAFT_LIBRARY', None)\n" + code],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    for place in ("GRAFT_LIBRARY", "/none/lib/", "dynamic linker"):
        assert place in text


def test_import_takes_cffi_alone():
    code = "import sys, graft\nheavy = {'numpy', 'scipy', 'torch', 'pandas', 'matplotlib', 'tqdm', 'mpi4py', " \
           "'graphblas', 'logging', 'inspect'}\nprint(sorted(heavy & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-S", "-c", "import sys; sys.path[:0] = " + repr(sys.path) + "\n" + code],
                          check=True, stdout=subprocess.PIPE, text=True).stdout == "[]\n"
