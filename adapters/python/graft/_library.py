# SPDX-License-Identifier: Apache-2.0
"""Finds and loads libgraft.so."""
from __future__ import annotations

import os
from typing import Any

from ._abi import ffi
from .errors import NotFoundError, VersionError

_HERE = os.path.dirname(os.path.realpath(__file__))
_SONAME = "libgraft.so.1"
_loaded: dict[str, Any] = {}


def _places() -> list[tuple[str, str]]:
    """Yield (path, description) of each place, in the order in which they are tried. The package may be in a wheel,
    which has a copy of the library, in graft/python of the folder of an installed library, in build/adapters/python
    of a build, or in adapters/python of the source, whose build is usually in the same tree."""
    root = os.path.join(_HERE, *[os.pardir] * 3)
    return [(os.path.join(_HERE, "lib", _SONAME), "in this package"),
            (os.path.normpath(os.path.join(root, "libgraft.so")), "in the installed tree or build around this package"),
            (os.path.normpath(os.path.join(root, "build", "libgraft.so")), "in a build beside the source")]


def find() -> str:
    """Find the library: the file in variable GRAFT_LIBRARY, a copy in the package, a build, or a library that the
    dynamic linker finds."""
    named = os.environ.get("GRAFT_LIBRARY")
    if named:
        return named
    return next((path for path, _ in _places() if os.path.exists(path)), _SONAME)


def grb_library() -> str:
    """The file with which products of an unchanged GraphBLAS program run in Graft:
    ``LD_PRELOAD=$(python3 -c 'import graft; print(graft.grb_library())') python3 program.py``."""
    folder = os.path.dirname(find())
    path = os.path.join(folder, "libgraft-grb.so")
    if folder and not os.path.exists(path):
        raise NotFoundError(f"there is no '{path}', expected it beside the Graft library")
    return path


def _refuse(path: str, why: str) -> None:
    looked = "" if path != _SONAME else "; looked for it in variable GRAFT_LIBRARY (not set), " + ", ".join(
        f"{place} ({what})" for place, what in _places()) + f", and as {_SONAME} with the dynamic linker"
    raise NotFoundError(f"cannot load the Graft library '{path}': {why}{looked}")


def _open(file: str) -> Any:
    """Load the library. With OMP_PROC_BIND or OMP_PLACES, OpenMP binds the thread that loads it to one place.
    Afterwards the thread may again run on its previous processors."""
    processors = os.sched_getaffinity(0)
    try:
        return ffi.dlopen(file, ffi.RTLD_NOW | ffi.RTLD_LOCAL)
    finally:
        if os.sched_getaffinity(0) != processors:
            os.sched_setaffinity(0, processors)


def load(path: str | os.PathLike[str] | None = None) -> Any:
    """Load the library once and return it; cffi calls its functions without the GIL."""
    file = os.fspath(path) if path is not None else find()
    if file not in _loaded:
        try:
            library = _open(file)
        except OSError as error:
            _refuse(file, str(error))
        try:
            library.graft_open
        except (AttributeError, ffi.error):
            raise VersionError(f"'{file}' exports no graft_open: it is not a Graft library") from None
        _loaded[file] = library
    return _loaded[file]
