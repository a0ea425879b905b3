# SPDX-License-Identifier: Apache-2.0
"""Matrices of python-graphblas, lent for a call without a copy: unpacked before it, and packed again after it."""
from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import Any, Iterator

from . import arrays
from .errors import ArgumentError


def _csr(parts: dict[str, Any], shape: tuple[int, int], name: str, dtype: str | None) -> arrays.Csr:
    """The arrays of an export or unpack. A value that all entries have is 1 (no values), or becomes an array."""
    import numpy as np
    values = parts["values"]
    if parts["is_iso"]:
        entries = int(parts["indptr"][-1])
        values = None if values[0] == 1 else np.full(entries, values[0], dtype or values.dtype)
    return arrays.csr_of(parts["indptr"], parts["col_indices"], values, shape, name, dtype)


def copy_csr(a: Any, name: str, dtype: str | None) -> arrays.Csr:
    """A copy of the arrays of a graphblas.Matrix, which stays as it is."""
    return _csr(a.ss.export("csr"), a.shape, name, dtype)


@contextmanager
def lent_csr(a: Any, name: str, dtype: str | None) -> Iterator[arrays.Csr]:
    """The arrays of a graphblas.Matrix themselves. Until the end it is empty."""
    parts = a.ss.unpack("csr")
    try:
        yield _csr(parts, a.shape, name, dtype)
    finally:
        a.ss.pack_csr(**parts, take_ownership=True)


@contextmanager
def lent_full(a: Any, name: str) -> Iterator[Any]:
    """The array of a graphblas.Matrix of which every element is present. Until the end it is empty."""
    import numpy as np
    if a.nvals != a.nrows * a.ncols:
        raise ArgumentError(f"{name} has {a.nvals} entries, expected all {a.nrows * a.ncols}")
    parts = a.ss.unpack("fullr")
    try:
        values = parts["values"]
        if parts["is_iso"]:
            values = np.full(a.shape, values.reshape(-1)[0])
        yield values.reshape(a.shape)
    finally:
        a.ss.pack_fullr(**parts, take_ownership=True)


def aggregate_lent(A: Any, X: Any, semiring: str, context: Any, out: Any, **how: Any) -> Any:
    """graft.aggregate() for a graphblas.Matrix as A, X or both."""
    import numpy as np

    from .product import Matrix, aggregate
    if A is X:
        raise ArgumentError("A and X are the same graphblas.Matrix, which cannot be lent twice")
    gives_graphblas = out is None and arrays.is_graphblas(X)
    with ExitStack() as stack:
        x = stack.enter_context(lent_full(X, "X")) if arrays.is_graphblas(X) else arrays.read_dense(X, "X")
        matrix = A
        if arrays.is_graphblas(A):
            csr = stack.enter_context(lent_csr(A, "A", "float64" if x.dtype.name == "float64" else "float32"))
            matrix = Matrix(csr, context=context)
            stack.callback(matrix.close)  # before the arrays go back
        elif not isinstance(A, Matrix):
            matrix = Matrix(A, context=context, dtype=x.dtype.name)
        if gives_graphblas and how["mask"] is None and not how["accumulate"] and x.dtype.name != "float16":
            out = np.empty((matrix.shape[0], x.shape[1]), x.dtype)  # of its own memory, which GraphBLAS can take over
        c = aggregate(matrix, x if arrays.is_graphblas(X) else X, semiring, out=out, **how)
    if not gives_graphblas:
        return c
    return type(X).ss.import_fullr(values=c, nrows=c.shape[0], ncols=c.shape[1], take_ownership=True)
