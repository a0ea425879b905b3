# SPDX-License-Identifier: Apache-2.0
"""Matrices of python-graphblas, read in place.

GxB_Iterator has a public struct with the pointers to the arrays of a matrix. Attaching one finishes pending work, as
any use of the matrix does, and changes nothing else: threads may share a matrix, and nothing has to be restored."""
from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

from . import arrays
from ._abi import ffi
from .errors import ArgumentError, ModuleError, OutOfMemoryError

_SPARSE, _BITMAP, _FULL = 2, 4, 8


class _Iterator(ctypes.Structure):
    """The struct GB_Iterator_opaque of SuiteSparse:GraphBLAS 7 to 9, in which all integers have 64 bits."""
    _fields_ = [*((name, ctypes.c_int64) for name in ("pstart", "pend", "p", "k", "header_size", "pmax", "avlen",
                                                      "avdim", "anvec", "Ap", "Ah", "Ab", "Ai", "Ax", "type_size")),
                ("A_sparsity", ctypes.c_int), ("iso", ctypes.c_bool), ("by_col", ctypes.c_bool)]


_KNOWN = (7, 8, 9)
_attaching = threading.Lock()  # two threads must not finish the same pending work


def _renew_lock() -> None:
    """Make a new lock in a child process, because the thread that held the lock does not exist there."""
    global _attaching
    _attaching = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _look(a: Any, name: str) -> _Iterator | None:
    """The arrays of a matrix in memory, or None if this version of GraphBLAS has a different struct."""
    from suitesparse_graphblas import ffi as grb
    from suitesparse_graphblas import lib
    if lib.GxB_IMPLEMENTATION_MAJOR not in _KNOWN:
        return None
    iterator = grb.new("GxB_Iterator *")
    with _attaching:
        code = lib.GxB_Iterator_new(iterator)
        if code == 0:
            code = lib.GxB_Matrix_Iterator_attach(iterator[0], a.gb_obj[0], grb.NULL)
    try:
        if code != 0:
            raise ModuleError(f"{name} cannot be read: GraphBLAS returns {code}, expected a valid matrix",
                              native_code=code)
        address = int(grb.cast("intptr_t", iterator[0]))
        return _Iterator.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(_Iterator)))
    finally:
        lib.GxB_Iterator_free(iterator)


def _array(address: int, length: int, dtype: Any) -> Any:
    """View an array of GraphBLAS. It can be read until the matrix changes."""
    import numpy as np
    dtype = np.dtype(dtype)
    if length == 0:
        return np.empty(0, dtype)
    x = np.frombuffer(ffi.buffer(ffi.cast("char *", address), length * dtype.itemsize), dtype)
    x.flags.writeable = False
    return x


def _export(a: Any, format: str, name: str) -> dict[str, Any]:
    """Copy the arrays in another format. The matrix keeps its own format."""
    from graphblas.exceptions import OutOfMemory
    try:
        return a.ss.export(format)
    except (OutOfMemory, MemoryError) as error:
        raise OutOfMemoryError(f"{name} is {a.nrows} x {a.ncols} with {a.nvals} entries, and there is no memory for a "
                               f"copy of it as {format}: {error}") from None


def _csr(indptr: Any, indices: Any, values: Any, is_iso: bool, shape: tuple[int, int], name: str,
         dtype: str | None) -> arrays.Csr:
    """Make a Csr. If all entries have one value, it is represented without values if it is 1, and otherwise by an
    array."""
    import numpy as np
    if is_iso:
        arrays.check_real(values, name)
        entries = int(indptr[-1])
        if entries == 0 or values[0] == 1:
            values = None
        else:
            values = np.full(entries, values[0], dtype or values.dtype)
            arrays.warn_once(f"{name} has one value for all entries, of which an array is made",
                             f": {values.nbytes} bytes")
    return arrays.csr_of(indptr, indices, values, shape, name, dtype)


def copy_csr(a: Any, name: str, dtype: str | None) -> arrays.Csr:
    """Copies of the arrays of a graphblas.Matrix."""
    parts = _export(a, "csr", name)
    return _csr(parts["indptr"], parts["col_indices"], parts["values"], parts["is_iso"], a.shape, name, dtype)


def lent_csr(a: Any, name: str, dtype: str | None) -> arrays.Csr:
    """The arrays of a graphblas.Matrix. They are not copied if it is sparse and held by row. The matrix must not
    change while they are used."""
    held = _look(a, name)
    if held is None or held.A_sparsity != _SPARSE or held.by_col:
        csr = copy_csr(a, name, dtype)
        size = sum(one.nbytes for one in (csr.indptr, csr.indices, csr.values) if one is not None)
        arrays.warn_once(f"{name} is held as {a.ss.format} and is copied to csr", f": {size} bytes")
        return csr
    indptr = _array(held.Ap, a.nrows + 1, "int64")
    entries = int(indptr[-1])
    values = _array(held.Ax, min(entries, 1) if held.iso else entries, a.dtype.np_type)
    return _csr(indptr, _array(held.Ai, entries, "int64"), values, held.iso, a.shape, name, dtype)


def lent_full(a: Any, name: str) -> Any:
    """The array of a graphblas.Matrix. It is copied if the matrix is not full and held by row."""
    import numpy as np
    held = _look(a, name)
    if a.nvals != a.nrows * a.ncols:
        raise ArgumentError(f"{name} has {a.nvals} entries, expected all {a.nrows * a.ncols}")
    by_row = held is not None and held.A_sparsity in (_BITMAP, _FULL) and (not held.by_col or 1 in a.shape)
    if by_row and not held.iso:
        return _array(held.Ax, a.nrows * a.ncols, a.dtype.np_type).reshape(a.shape)
    parts = _export(a, "fullr", name)
    values = parts["values"]
    values = np.full(a.shape, values.reshape(-1)[0]) if parts["is_iso"] else values.reshape(a.shape)
    arrays.warn_once(f"{name} is held as {a.ss.format}{' with one value' if parts['is_iso'] else ''} and is copied to "
                     "an array by row", f": {values.nbytes} bytes")
    return values


def aggregate_graphblas(A: Any, X: Any, semiring: str, context: Any, out: Any, **how: Any) -> Any:
    """Compute graft.aggregate() for a graphblas.Matrix as A, X or both."""
    import numpy as np

    from .product import Matrix, aggregate
    gives_graphblas = out is None and arrays.is_graphblas(X)
    x = arrays.read_dense(lent_full(X, "X"), "X") if arrays.is_graphblas(X) else arrays.read_dense(X, "X")
    dtype = "float64" if x.dtype.name == "float64" else "float32"
    if arrays.is_graphblas(A):
        A = lent_csr(A, "A", dtype)
    matrix = A if isinstance(A, Matrix) else Matrix(A, context=context, dtype=dtype)
    if gives_graphblas and how["mask"] is None and not how["accumulate"]:
        out = np.empty((matrix.shape[0], x.shape[1]), x.dtype)  # owns its memory, for GraphBLAS
    try:
        c = aggregate(matrix, x if arrays.is_graphblas(X) else X, semiring, out=out, **how)
    finally:
        if matrix is not A:
            matrix.close()  # while the arrays still exist
    if not gives_graphblas:
        return c
    return type(X).ss.import_fullr(values=c, nrows=c.shape[0], ncols=c.shape[1], take_ownership=True)
