# SPDX-License-Identifier: Apache-2.0
"""Graft: sums over neighbours and graph neural networks on CPUs, for arrays that a program already has.

>>> import graft
>>> means = graft.aggregate(graph, features, "plus_second", row_scale="mean")
>>> run = graft.train(graft.Dataset(graph, features, labels, split), model="sage", epochs=60)
>>> run.model().save("model.safetensors")

Only cffi is needed to import this package. NumPy is imported with the first array; scipy.sparse, torch, graphblas,
mpi4py, tqdm, matplotlib and pandas are imported when a program uses them."""
from __future__ import annotations

from typing import Any

from ._library import grb_library
from .arrays import CopyWarning
from .context import Context, default_context
from .errors import (ArgumentError, CancelledError, Error, FileError, ForkedError, FormatError, ModuleError,
                     NonfiniteError, NotFoundError, OptionError, OutOfMemoryError, PeerError, StateError,
                     UnsupportedError, VersionError)
from .product import SEMIRINGS, Matrix, aggregate

# The modules that define the other names. They are imported when a name is first used.
_LATER = {"Dataset": "data", "Graph": "distributed", "Halo": "distributed", "History": "history", "Mesh": "simulation",
          "Model": "model", "Network": "simulation", "Plan": "distributed", "Ranks": "ranks", "Sampler": "sampling",
          "Stream": "simulation", "Trainer": "training", "train": "training"}

__all__ = ["ArgumentError", "CancelledError", "Context", "CopyWarning", "Error", "FileError", "ForkedError",
           "FormatError", "Matrix", "ModuleError", "NonfiniteError", "NotFoundError", "OptionError", "OutOfMemoryError",
           "PeerError", "SEMIRINGS", "StateError", "UnsupportedError", "VersionError", "aggregate", "default_context",
           "grb_library", *_LATER]


def __getattr__(name: str) -> Any:
    import importlib
    if name in _LATER:
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    if name == "torch":
        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module 'graft' has no attribute '{name}'")
