# SPDX-License-Identifier: Apache-2.0
"""Arrays of Python as views for the library, without copies if types and strides allow it.

Input arrays are converted if necessary, with one warning (CopyWarning) for each reason; output arrays are never
converted, but refused with a sentence. NumPy is imported with the first array."""
from __future__ import annotations

import operator
import sys
import warnings
from typing import TYPE_CHECKING, Any

from ._abi import ffi
from .context import new
from .errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

_F32, _F64, _I32, _I64, _BF16 = (ffi.integer_const("GRAFT_" + name) for name in ("F32", "F64", "I32", "I64", "BF16"))
_FLOATS = {"float32": _F32, "float64": _F64, "bfloat16": _BF16}
_INTEGERS = {"int32": _I32, "int64": _I64}


class CopyWarning(UserWarning):
    """An array was converted, because the library cannot read it as it is."""


_warned: set[str] = set()


def warn_once(reason: str, detail: str = "") -> None:
    """Warn about a reason once, at the line of the program that called this package."""
    if reason not in _warned:
        _warned.add(reason)
        depth, frame = 2, sys._getframe(0).f_back
        while frame is not None and frame.f_globals.get("__name__", "").startswith(__package__ + "."):
            depth, frame = depth + 1, frame.f_back
        warnings.warn(reason + detail, CopyWarning, stacklevel=depth)


def as_array(x: Any, name: str) -> np.ndarray:
    """Call numpy.asarray(). An object that is not an array is refused, and the message has its name."""
    import numpy as np
    try:
        return np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(f"{name} is a {type(x).__module__}.{type(x).__name__}, of which NumPy makes no array: "
                            f"{error}") from None


def check_real(x: np.ndarray, name: str) -> None:
    """Refuse complex numbers, whose imaginary part would be lost, and objects that are not numbers."""
    if x.dtype.kind not in "fiub" and x.dtype.name not in _FLOATS:
        raise ArgumentError(f"{name} has type {x.dtype.name}, expected float32 or float64")


def is_row_major(x: np.ndarray) -> bool:
    """Whether rows are contiguous and follow each other at a fixed distance of whole elements."""
    size = x.itemsize
    columns_fine = x.shape[1] <= 1 or x.strides[1] == size
    rows_fine = x.shape[0] <= 1 or (x.strides[0] % size == 0 and x.strides[0] >= x.shape[1] * size)
    return columns_fine and rows_fine and x.flags.aligned


def pointer(x: np.ndarray) -> Any:
    return ffi.cast("void *", x.ctypes.data)


def copy(data: Any, count: int, dtype: str) -> np.ndarray:
    """Copy `count` elements from the library. A NULL pointer gives zeros."""
    import numpy as np
    out = np.zeros(count, dtype)
    if data:
        ffi.memmove(ffi.from_buffer(out), data, out.nbytes)
    return out


def view_dense(x: np.ndarray, dtype: int | None = None) -> Any:
    """A graft_dense that describes an array with is_row_major(). The caller keeps the array alive."""
    stride = x.strides[0] // x.itemsize if x.shape[0] > 1 else x.shape[1]
    return new("graft_dense", dtype=dtype or _FLOATS[x.dtype.name], n_rows=x.shape[0], n_cols=x.shape[1],
               stride=max(stride, x.shape[1]), data=pointer(x))


def _native(x: np.ndarray, name: str) -> np.ndarray:
    if x.dtype.isnative:
        return x
    warn_once(f"{name} is big-endian and is copied")
    return x.astype(x.dtype.newbyteorder("="))


def read_dense(x: Any, name: str, columns: bool = True) -> np.ndarray:
    """A matrix of float32, float64 or bfloat16 that the library can read, without a copy if `x` is already such a
    matrix. A vector is a matrix of one column."""
    import numpy as np
    x = as_array(x, name)
    if columns and x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2:
        raise ArgumentError(f"{name} has {x.ndim} dimensions, expected 2, or 1 for a single column")
    x = _native(x, name)
    if x.dtype.name == "float16":
        warn_once(f"{name} has type float16 and is copied to float32")
        x = x.astype(np.float32)
    if x.dtype.name not in _FLOATS:
        raise ArgumentError(f"{name} has type {x.dtype.name}, expected float32 or float64: convert it, for example "
                            "with .astype('float32')")
    if not is_row_major(x):
        warn_once(f"{name} has rows that are not contiguous and is copied")
        x = np.ascontiguousarray(x)
    return x


def check_output(x: Any, name: str, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> np.ndarray:
    """Check an array that the library may write. It is refused unless it is exactly as expected."""
    import numpy as np
    if not isinstance(x, np.ndarray):
        raise ArgumentError(f"{name} is a {type(x).__name__}, expected a numpy.ndarray that can be written")
    if x.shape != shape:
        raise ArgumentError(f"{name} has shape {x.shape}, expected {shape}")
    if x.dtype.name not in dtypes:
        raise ArgumentError(f"{name} has type {x.dtype.name}, expected {' or '.join(dtypes)}")
    if not x.dtype.isnative:
        raise ArgumentError(f"{name} is big-endian, expected the byte order of this processor")
    if not x.flags.writeable:
        raise ArgumentError(f"{name} is read-only, expected an array that can be written")
    if not is_row_major(x if x.ndim == 2 else x[:, None] if x.ndim == 1 and x.strides == (x.itemsize,) else x[None]):
        raise ArgumentError(f"{name} is not contiguous: expected rows without gaps between their elements")
    return x


def new_matrix(n_rows: int, n_cols: int, dtype: Any, zeros: bool = False) -> np.ndarray:
    """Make a matrix that begins at a cache line. Its rows do so too if their length is a multiple of 16 floats."""
    import numpy as np
    dtype = np.dtype(dtype)
    bytes = n_rows * n_cols * dtype.itemsize
    memory = (np.zeros if zeros else np.empty)(bytes + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin:begin + bytes].view(dtype).reshape(n_rows, n_cols)


def read_vector(x: Any, name: str, length: int, dtype: Any) -> np.ndarray:
    """A contiguous vector of the given type and length; other real numbers are converted to it."""
    import numpy as np
    x = as_array(x, name)
    check_real(x, name)
    if x.shape != (length,):
        raise ArgumentError(f"{name} has shape {x.shape}, expected ({length},)")
    return np.ascontiguousarray(x, dtype)


def read_whole(x: Any, name: str, dtype: Any, low: int, high: int) -> np.ndarray:
    """Read whole numbers from `low` to `high` as a contiguous array with one vertex in each row. They may have a
    floating-point type. The library checks arrays that already have the right type."""
    import numpy as np
    x = as_array(x, name)
    check_real(x, name)
    if x.dtype != dtype and x.dtype.kind != "b":
        numbers = x.astype(np.float64) if x.dtype.kind == "f" else x
        fine = (numbers >= low) & (numbers <= high)
        if x.dtype.kind == "f":
            fine &= np.floor(numbers) == numbers
        if not fine.all():
            where = tuple(np.argwhere(~fine)[0])
            raise ArgumentError(f"{name}: vertex {where[0]} has {x[where]}, expected a whole number from {low} to "
                                f"{high}")
    return np.ascontiguousarray(x, dtype)


def read_whole_vector(x: Any, name: str, length: int, dtype: Any, low: int, high: int) -> np.ndarray:
    """Read one whole number for each vertex."""
    x = as_array(x, name)
    if x.shape != (length,):
        raise ArgumentError(f"{name} has shape {x.shape}, expected ({length},)")
    return read_whole(x, name, dtype, low, high)


def read_ids(x: Any, name: str) -> np.ndarray:
    """Read a vector of integers of any integer type. The caller checks their range."""
    import numpy as np
    x = as_array(x, name)
    if x.ndim != 1 or (x.dtype.kind not in "iu" and x.size > 0):
        raise ArgumentError(f"{name} has type {x.dtype.name} and {x.ndim} dimensions, expected a vector of integers")
    return np.ascontiguousarray(x, np.int64)


def is_graphblas(x: Any) -> bool:
    """Whether it is a graphblas.Matrix."""
    return type(x).__name__ == "Matrix" and type(x).__module__.startswith("graphblas.")


class Csr:
    """A sparse matrix as arrays; `values` is None if every value is 1."""

    def __init__(self, indptr: Any, indices: Any, values: Any, shape: tuple[int, int]) -> None:
        self.indptr, self.indices, self.values, self.shape = indptr, indices, values, shape

    @property
    def dtype_name(self) -> str | None:
        return None if self.values is None else self.values.dtype.name

    def view(self) -> Any:
        """A graft_csr that describes these arrays. The caller keeps this object alive."""
        short = self.indptr.dtype.name == "int32"
        return new("graft_csr", index_type=_INTEGERS[self.indices.dtype.name],
                   value_type=0 if self.values is None else _FLOATS[self.values.dtype.name],
                   n_rows=self.shape[0], n_cols=self.shape[1], col_idx=pointer(self.indices),
                   values=ffi.NULL if self.values is None else pointer(self.values),
                   row_ptr=ffi.NULL if short else ffi.cast("int64_t *", pointer(self.indptr)),
                   row_ptr_32=ffi.cast("int32_t *", pointer(self.indptr)) if short else ffi.NULL)


def _read_indices(x: Any, name: str) -> np.ndarray:
    import numpy as np
    x = _native(as_array(x, name), name)
    if x.dtype.name in ("uint32", "uint64"):
        x = x.view(x.dtype.name[1:])  # the library checks that no index is negative
    if x.dtype.name not in _INTEGERS or x.ndim != 1:
        raise ArgumentError(f"{name} has type {x.dtype.name} and {x.ndim} dimensions, expected a vector of int32 or "
                            "int64")
    if not x.flags.c_contiguous or not x.flags.aligned:
        warn_once(f"{name} is not contiguous and is copied")
        x = np.ascontiguousarray(x)
    return x


def _read_values(x: Any, name: str, dtype: str | None) -> np.ndarray:
    import numpy as np
    x = _native(as_array(x, name), name)
    wanted = dtype or ("float64" if x.dtype.name == "float64" else "float32")
    check_real(x, name)
    if x.ndim != 1:
        raise ArgumentError(f"{name} has {x.ndim} dimensions, expected a vector with a value for each entry")
    if x.dtype.name != wanted:
        warn_once(f"{name} has type {x.dtype.name} and is copied to {wanted}")
        x = x.astype(wanted)
    if not x.flags.c_contiguous or not x.flags.aligned:
        warn_once(f"{name} is not contiguous and is copied")
        x = np.ascontiguousarray(x)
    return x


def read_dtype(dtype: Any) -> str | None:
    """Read a type from its name or from a type of NumPy. The result is "float32", "float64" or None."""
    if dtype is None:
        return None
    import numpy as np
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in ("float32", "float64"):
        raise ArgumentError(f"dtype is {name}, expected float32 or float64")
    return name


def read_shape(shape: Any, name: str) -> tuple[int, int]:
    try:
        rows, columns = map(operator.index, shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} has shape {shape!r}, expected two integers (rows, columns)") from None
    if min(rows, columns) < 0:
        raise ArgumentError(f"{name} has shape ({rows}, {columns}), expected no negative number")
    return rows, columns


def csr_of(indptr: Any, indices: Any, values: Any, shape: Any, name: str, dtype: str | None = None) -> Csr:
    """Make a Csr. Lengths are checked here, because the library does not know them; the library checks the contents."""
    shape = read_shape(shape, name)
    indptr, indices = _read_indices(indptr, name + ".indptr"), _read_indices(indices, name + ".indices")
    if values is not None:
        values = _read_values(values, name + ".data", dtype)
    if len(indptr) != shape[0] + 1:
        raise ArgumentError(f"{name}.indptr has {len(indptr)} elements, expected {shape[0] + 1} for {shape[0]} rows")
    entries = int(indptr[-1])
    if entries > len(indices) or (values is not None and entries > len(values)):
        raise ArgumentError(f"{name} has {len(indices)} indices and {len(indices if values is None else values)} "
                            f"values, but indptr ends with {entries}")
    return Csr(indptr, indices, values, shape)


def csr_of_edges(sources: Any, targets: Any, shape: Any, values: Any = None, dtype: str | None = None) -> Csr:
    """Make a Csr with the entries (targets[e], sources[e]), in the order of the edges in each row."""
    import numpy as np
    shape = read_shape(shape, "A")
    sources, targets = read_ids(sources, "sources"), read_ids(targets, "targets")
    if sources.shape != targets.shape:
        raise ArgumentError(f"there are {len(sources)} sources and {len(targets)} targets, expected as many")
    for ids, name, count in ((sources, "sources", shape[1]), (targets, "targets", shape[0])):
        if len(ids) and not 0 <= ids.min() <= ids.max() < count:
            raise ArgumentError(f"{name} are from {ids.min()} to {ids.max()}, expected 0 to {count - 1}")
    order = np.argsort(targets, kind="stable")
    indptr = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(targets, minlength=shape[0]), out=indptr[1:])
    indices = sources[order].astype(np.int32 if shape[1] <= np.iinfo(np.int32).max else np.int64)
    if values is not None:
        values = as_array(values, "values")
        if values.shape != sources.shape:
            raise ArgumentError(f"values have shape {values.shape}, expected {sources.shape}, one for each edge")
        values = values[order]
    return csr_of(indptr, indices, values, shape, "A", dtype)


def read_csr(a: Any, name: str, dtype: str | None = None) -> Csr:
    """A sparse matrix of scipy, torch or graphblas, or a tuple (indptr, indices, values or None, shape), as arrays of
    the library. Values are converted to `dtype`, if given."""
    if isinstance(a, Csr):
        return a
    if is_graphblas(a):
        from .grb import copy_csr
        return copy_csr(a, name, dtype)
    if isinstance(a, tuple) and len(a) == 4:
        return csr_of(*a, name=name, dtype=dtype)
    if hasattr(a, "crow_indices") and str(getattr(a, "layout", "")) == "torch.sparse_csr":
        a = a.detach()
        return csr_of(a.crow_indices(), a.col_indices(), a.values(), a.shape, name, dtype)
    if getattr(a, "format", None) in ("csc", "coo", "bsr", "lil", "dok", "dia"):
        warn_once(f"{name} has format {a.format} and is converted to csr")
        a = a.tocsr()
    if getattr(a, "format", None) == "csr" and hasattr(a, "indptr"):
        return csr_of(a.indptr, a.indices, a.data, a.shape, name, dtype)
    if type(a).__name__ == "TransposedMatrix" and type(a).__module__.startswith("graphblas."):
        raise ArgumentError(f"{name} is the transpose of a graphblas.Matrix, which has no arrays: give {name}.new(), "
                            "or the transpose .T of a graft.Matrix")
    raise ArgumentError(f"{name} is a {type(a).__module__}.{type(a).__name__}, expected a scipy.sparse matrix, a torch "
                        "tensor of layout sparse_csr, a graphblas.Matrix, or a tuple (indptr, indices, values or None, "
                        "shape)")
