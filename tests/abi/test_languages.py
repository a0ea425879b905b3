# SPDX-License-Identifier: Apache-2.0
"""Checks a host that does not use the C headers: it declares the structs and calls with ctypes in Python.
tests/hosts has hosts in Fortran. usage: test_languages.py LIBRARY"""
import ctypes
import sys

import tap

I32, I64, U32, P = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32, ctypes.c_void_p


class Error(ctypes.Structure):
    _fields_ = [("size", U32), ("code", I32), ("native_code", I32), ("rank", I32), ("where", ctypes.c_char * 48),
                ("message", ctypes.c_char * 448)]


LOG = ctypes.CFUNCTYPE(None, P, I32, ctypes.c_char_p)


class Host(ctypes.Structure):
    _fields_ = [("size", U32), ("reserved", U32), ("self", P), ("log", LOG), ("allocate", P), ("deallocate", P),
                ("extension", P)]


class Csr(ctypes.Structure):
    _fields_ = [("size", U32), ("index_type", I32), ("value_type", I32), ("reserved", U32), ("n_rows", I64),
                ("n_cols", I64), ("row_ptr", P), ("col_idx", P), ("values", P)]


class Dense(ctypes.Structure):
    _fields_ = [("size", U32), ("dtype", I32), ("n_rows", I64), ("n_cols", I64), ("stride", I64), ("data", P)]


class MxmArgs(ctypes.Structure):
    """The arguments of a product, up to the fields that are needed here. The library takes later fields as zero."""
    _fields_ = [("size", U32), ("semiring", I32), ("flags", U32), ("threads", I32), ("a", P),
                ("b", ctypes.POINTER(Dense)), ("c", ctypes.POINTER(Dense))]


E = ctypes.POINTER(Error)


class Api(ctypes.Structure):
    _fields_ = [("size", U32), ("abi", U32), ("version", ctypes.c_char_p), ("context", P),
                ("close", ctypes.CFUNCTYPE(None, P)), ("get_interface", ctypes.CFUNCTYPE(P, P, ctypes.c_char_p)),
                ("set", ctypes.CFUNCTYPE(I32, P, ctypes.c_char_p, ctypes.c_char_p, E))]


class Mxm(ctypes.Structure):
    _fields_ = [("size", U32), ("reserved", U32),
                ("matrix_create", ctypes.CFUNCTYPE(I32, P, ctypes.POINTER(Csr), I32, ctypes.POINTER(P), E)),
                ("matrix_transpose", ctypes.CFUNCTYPE(I32, P, P, ctypes.POINTER(P), E)),
                ("matrix_bytes", ctypes.CFUNCTYPE(I64, P)), ("matrix_destroy", ctypes.CFUNCTYPE(None, P)),
                ("run", ctypes.CFUNCTYPE(I32, P, ctypes.POINTER(MxmArgs), E))]


def sized(kind, **fields):
    return kind(size=ctypes.sizeof(kind), **fields)


def dense(rows):
    array = (ctypes.c_float * (len(rows) * len(rows[0])))(*(x for row in rows for x in row))
    view = sized(Dense, dtype=1, n_rows=len(rows), n_cols=len(rows[0]), stride=len(rows[0]),
                 data=ctypes.addressof(array))
    return array, view


def python_host(path):
    lines, error, api = [], sized(Error), ctypes.POINTER(Api)()
    host = sized(Host, log=LOG(lambda _, level, text: lines.append((level, text))))
    rc = ctypes.CDLL(path).graft_open(U32(1), U32(1), ctypes.byref(host), ctypes.byref(api), ctypes.byref(error))
    tap.ok(rc == 0 and api.contents.abi == 1, "ctypes: a context is opened", error.message)
    api = api.contents
    mxm = ctypes.cast(api.get_interface(api.context, b"graft.mxm/1"), ctypes.POINTER(Mxm)).contents

    gathers = [[1, 2, 5], [0], [], [2, 2, 4], [0, 1, 2, 3], [5]]
    row_ptr = (I64 * 7)(*(sum(map(len, gathers[:i])) for i in range(7)))
    col_idx = (I32 * row_ptr[6])(*sum(gathers, []))
    csr = sized(Csr, index_type=3, n_rows=6, n_cols=6, row_ptr=ctypes.addressof(row_ptr),
                col_idx=ctypes.addressof(col_idx))
    matrix = P()
    rc = mxm.matrix_create(api.context, csr, 0, matrix, error)
    tap.ok(rc == 0 and matrix.value, "ctypes: a matrix", error.message)
    rows = [[v + 0.5, -v * v, 3.0] for v in range(6)]
    kept, b = dense(rows)
    result, c = dense([[7.0] * 3] * 6)
    args = sized(MxmArgs, semiring=2, threads=2, a=matrix, b=ctypes.pointer(b), c=ctypes.pointer(c))
    rc = mxm.run(api.context, args, error)
    wanted = [sum(rows[u][j] for u in row) for row in gathers for j in range(3)]
    tap.ok(rc == 0 and list(result) == wanted and len(kept) == 18, "ctypes: a product", error.message, list(result))
    mxm.matrix_destroy(matrix)

    col_idx[4], matrix = 99, P(1)
    rc = mxm.matrix_create(api.context, csr, 0, matrix, error)
    tap.ok(rc == -6 == error.code and b"99" in error.message and matrix.value == 1,
           "ctypes: a column out of range is told, and the output stays", rc, error.message)
    rc = api.set(api.context, b"mxm.kernle", b"simd", error)
    tap.ok(rc == -8 and b"mxm.kernel" in error.message, "ctypes: the nearest option is told", error.message)
    api.close(api.context)
    tap.ok(all(level < 2 for level, _ in lines), "ctypes: nothing in the log reads as a warning", *lines)


python_host(sys.argv[1])
tap.done()
