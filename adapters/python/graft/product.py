# SPDX-License-Identifier: Apache-2.0
"""Sums, maxima and minima over neighbours: masked products of a sparse and a dense matrix."""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable

from . import arrays
from ._abi import ffi
from .context import Context, default_context, new, text_of
from .errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

SEMIRINGS = {name: ffi.integer_const("GRAFT_" + name.upper())
             for name in ("plus_times", "plus_second", "max_times", "max_second", "min_times", "min_second")}
_ACCUMULATE, _REPLACE = ffi.integer_const("GRAFT_MXM_ACCUMULATE"), ffi.integer_const("GRAFT_MXM_REPLACE")
_ROWS, _BITS, _BYTES = (ffi.integer_const("GRAFT_MASK_" + name) for name in ("ROWS", "BITS", "BYTES"))
_COMPLEMENT = ffi.integer_const("GRAFT_MASK_COMPLEMENT")
_RELU = ffi.integer_const("GRAFT_EPILOGUE_RELU")


class Matrix:
    """A sparse matrix that is checked and prepared once, for many products. Row v holds the vertices from which v
    gathers: an edge u -> v is the entry (v, u).

    `a` is a scipy.sparse matrix, a torch tensor of layout sparse_csr, a graphblas.Matrix, or a tuple (indptr, indices,
    values or None, shape). Its arrays are borrowed, not copied, and must not change while the matrix lives; see
    update_values(). Arrays of a graphblas.Matrix are copied. Without values (None) each value is 1. Values are
    converted to `dtype`, "float32" or "float64".
    """

    def __init__(self, a: Any, *, context: Context | None = None, dtype: str | None = None) -> None:
        self.context = context or default_context()
        self._arrays: arrays.Csr | None = arrays.read_csr(a, "A", arrays.read_dtype(dtype))
        self.shape: tuple[int, int] = self._arrays.shape
        self.dtype: str | None = self._arrays.dtype_name
        """The type of the values, or None without values."""
        self.index_dtype: str = self._arrays.indices.dtype.name
        self._mxm = self.context.interface("graft_mxm_api")
        out = ffi.new("graft_matrix **")
        self.context.call(self._mxm.matrix_create, self.context.handle, self._arrays.view(), 0, out)
        self._begin(out[0], self._arrays, lambda: None)

    def _begin(self, handle: Any, entries: arrays.Csr, transpose: Callable[[], Matrix | None]) -> None:
        """Take over a matrix of the library. `entries` are its arrays, or for a transpose the arrays of the original
        matrix."""
        self._handle, self._entries, self._transpose = handle, entries, transpose
        self._degrees: np.ndarray | None = None
        self._destroy = self.context.owner(self, self._mxm.matrix_destroy, handle)

    @classmethod
    def from_edges(cls, sources: Any, targets: Any, shape: tuple[int, int], values: Any = None, *,
                   context: Context | None = None) -> Matrix:
        """The matrix of edges sources[e] -> targets[e]: the entries (targets[e], sources[e]), in the order of the edges
        in each row. Repeated edges stay. `shape` is (number of targets, number of sources)."""
        return cls(arrays.csr_of_edges(sources, targets, shape, values), context=context)

    @property
    def T(self) -> Matrix:
        """The transpose, made at first use and kept. It refers to this matrix, but does not keep it alive: both would
        stay until the garbage collector finds them."""
        found = self._transpose()
        if found is None:
            found = self._new_transpose() if self._arrays is not None else Matrix(self._entries, context=self.context)
            found._transpose = weakref.ref(self)
            self._transpose = lambda: found
        return found

    def _new_transpose(self) -> Matrix:
        other = object.__new__(Matrix)
        other.context, other._mxm, other._arrays = self.context, self._mxm, None
        other.shape, other.dtype, other.index_dtype = self.shape[::-1], self.dtype, self.index_dtype
        out = ffi.new("graft_matrix **")
        self.context.call(self._mxm.matrix_transpose, self.context.handle, self._handle, out)
        other._begin(out[0], self._entries, lambda: None)
        return other

    def degrees(self) -> np.ndarray:
        """The number of entries of each row."""
        import numpy as np
        if self._degrees is None:
            indptr = self._entries.indptr
            self._degrees = np.diff(indptr) if self._arrays is not None else \
                np.bincount(self._entries.indices[:indptr[-1]], minlength=self.shape[0])
        return self._degrees

    def update_values(self, values: Any = None) -> None:
        """Use new values for the same entries; without an argument, values that were changed in place. The transpose
        uses them too."""
        if self._arrays is None:
            raise ArgumentError("this matrix is a transpose: update the values of the matrix that it was made from")
        new_values = self._arrays.values
        if new_values is None:
            raise ArgumentError("this matrix was made without values, and takes none")
        if values is not None:
            new_values = arrays.read_vector(values, "values", len(self._arrays.indices), self.dtype)
        self.context.call(self._mxm.matrix_update_values, self.context.handle, self._handle,
                          arrays.pointer(new_values), ffi.NULL)
        self._arrays.values = new_values
        transpose = self._transpose()
        if transpose is not None:
            self.context.call(self._mxm.matrix_update_values, self.context.handle, transpose._handle, ffi.NULL,
                              self._handle)

    @property
    def bytes(self) -> int:
        """The number of bytes that kernels have allocated for the matrix and that it owns itself."""
        return self._mxm.matrix_bytes(self._handle)

    def explain(self) -> str:
        """The kernel of the last product, and the reason for it."""
        text = ffi.new("char[]", 4096)
        self.context.call(self._mxm.explain, self.context.handle, ffi.NULL, text, 4096)
        return text_of(text)

    def close(self) -> None:
        """Free the matrix now, or as soon as a call of another thread in its context has ended."""
        self._destroy()

    def __repr__(self) -> str:
        return f"<graft.Matrix {self.shape[0]} x {self.shape[1]}, values {self.dtype or 'none'}>"


def _view_mask(args: Any, mask: Any, shape: tuple[int, int], complement: bool) -> Any:
    if mask is None:
        return None
    import numpy as np
    mask = arrays.as_array(mask, "mask")
    if mask.dtype == bool and mask.shape == shape[:1]:
        kind, field, mask, stride = _ROWS, "present", np.packbits(mask, bitorder="little"), 0
    elif mask.dtype == bool and mask.shape == shape:
        kind, field, stride = _BYTES, "values", shape[1]
    elif mask.dtype == np.uint8 and mask.shape == (shape[0], (shape[1] + 7) // 8):
        kind, field, stride = _BITS, "present", mask.shape[1]
    else:
        bits = (shape[0], (shape[1] + 7) // 8)
        raise ArgumentError(f"mask has type {mask.dtype.name} and shape {mask.shape}, expected bool and {shape[:1]} "
                            f"for rows, bool and {shape} for elements, or uint8 and {bits} for bits")
    if mask.ndim == 2 and not arrays.is_row_major(mask):
        arrays.warn_once("mask is not contiguous and is copied")
        mask = np.ascontiguousarray(mask)
    if mask.ndim == 2 and shape[0] > 1:
        stride = max(mask.strides[0], stride)
    view = new("graft_mask", kind=kind, flags=_COMPLEMENT if complement else 0, stride=stride,
               **{field: ffi.cast("uint8_t *", arrays.pointer(mask))})
    args.mask = view
    return view, mask


def _view_scale(args: Any, scale: Any, a: Matrix, dtype: str) -> Any:
    import numpy as np
    if scale is None:
        return None
    if isinstance(scale, str) and scale != "mean":
        raise ArgumentError(f"row_scale is '{scale}', expected 'mean', or a factor for each row")
    if isinstance(scale, str):
        scale = 1 / np.maximum(a.degrees(), 1)
    factors = arrays.read_vector(scale, "row_scale", a.shape[0], dtype)
    args.row_scale = arrays.pointer(factors)
    return factors


def _view_epilogue(args: Any, bias: Any, relu: bool, width: int, dtype: str) -> Any:
    if bias is None and not relu:
        return None
    view = new("graft_epilogue", flags=_RELU if relu else 0)
    if bias is not None:
        bias = arrays.read_vector(bias, "bias", width, dtype)
        view.bias = arrays.pointer(bias)
    args.epilogue = view
    return view, bias


def _view_winner(args: Any, winner: Any, shape: tuple[int, int], dtype: str) -> Any:
    if winner is not None:
        arrays.check_output(winner, "winner", shape, (dtype,))
        args.winner = arrays.pointer(winner)
        args.winner_stride = max(winner.strides[0] // winner.itemsize, shape[1]) if shape[0] > 1 else shape[1]
    return winner


def _output(out: Any, shape: tuple[int, int], is_vector: bool, dtype: str, zeros: bool) -> tuple[Any, Any]:
    """The matrix that is written, and the view of it that the caller gets."""
    if out is None:
        c = arrays.new_matrix(*shape, dtype, zeros=zeros)
        return c, c[:, 0] if is_vector else c
    arrays.check_output(out, "out", shape[:1] if is_vector else shape, (dtype,))
    return out[:, None] if is_vector else out, out


def aggregate(A: Any, X: Any, semiring: str = "plus_times", *, mask: Any = None, complement: bool = False,
              out: Any = None, accumulate: bool = False, replace: bool = False, row_scale: Any = None, bias: Any = None,
              relu: bool = False, winner: Any = None, threads: int = 0, context: Context | None = None) -> Any:
    """Gather from neighbours: ``C<M> (+)= diag(row_scale) (A (+.x) X)``, like GrB_mxm of GraphBLAS.

    A           a Matrix, or any argument of Matrix(). A Matrix is prepared once, so use it for many products.
                A graphblas.Matrix is read in place, without a copy, if it is sparse and stored by row
    X           [k, n] or [k] of float32 or float64; rows may have gaps between them. Or a full graphblas.Matrix, which
                is also read in place if it is stored by row; without `out` the result is then a graphblas.Matrix
    semiring    plus, max or min, and times (the values of A) or second (no values): "plus_times", "max_second", ...
    mask        the writable part: bool [m] for rows, bool [m, n] for elements, uint8 [m, (n + 7) // 8] for elements
                as bits (numpy.packbits with bitorder="little"). `complement` inverts it
    out         the array that is written and returned, by default a new array. It is never converted
    accumulate  out (+)= the result, with the first operation of the semiring
    replace     masked elements become 0; without it they keep their values
    row_scale   a factor for each row, or "mean" for 1 / the number of entries of the row
    bias, relu  ... + bias [n], and then the maximum with 0
    winner      an array [m, n] of the index type of A that is written: the column that gave a maximum or minimum, or -1
    threads     the largest number of threads; 0 means that of option "threads"

    Returns C, [m, n] or [m], of the type of X (float32 for bfloat16). The results are bitwise identical for any number
    of threads. Raises graft.Error; `out` is then unchanged.
    """
    if semiring not in SEMIRINGS:
        raise ArgumentError(f"semiring is '{semiring}', expected one of {', '.join(SEMIRINGS)}")
    if arrays.is_graphblas(A) or arrays.is_graphblas(X):
        from .grb import aggregate_graphblas
        return aggregate_graphblas(A, X, semiring, context, out, mask=mask, complement=complement,
                                   accumulate=accumulate, replace=replace, row_scale=row_scale, bias=bias, relu=relu,
                                   winner=winner, threads=threads)
    x = arrays.read_dense(X, "X")
    dtype = "float32" if x.dtype.name == "bfloat16" else x.dtype.name
    a = A if isinstance(A, Matrix) else Matrix(A, context=context, dtype=dtype)
    if a.dtype not in (None, dtype):
        raise ArgumentError(f"the values of A have type {a.dtype} and X has {dtype}, expected the same: make the "
                            f"Matrix with dtype='{dtype}', or convert X")
    shape = (a.shape[0], x.shape[1])
    if accumulate and out is None:
        raise ArgumentError("accumulate needs an array `out` to add to")
    c, result = _output(out, shape, getattr(X, "ndim", 2) == 1, dtype, mask is not None)
    args = new("graft_mxm_args", semiring=SEMIRINGS[semiring], threads=threads, a=a._handle,
               flags=(_ACCUMULATE if accumulate else 0) | (_REPLACE if replace else 0))
    views = [arrays.view_dense(x), arrays.view_dense(c)]
    args.b, args.c = views
    keep = [_view_mask(args, mask, shape, complement), _view_scale(args, row_scale, a, dtype),
            _view_epilogue(args, bias, relu, shape[1], dtype), _view_winner(args, winner, shape, a.index_dtype)]
    a.context.call(a._mxm.run, a.context.handle, args)
    del keep  # the objects to which the arguments point must live until here
    return result
