# SPDX-License-Identifier: Apache-2.0
"""Ranks are processes of MPI, or threads of this process, among which a graph is distributed."""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ContextManager

from ._abi import ffi
from .context import Collective, Context, new
from .errors import ArgumentError

if TYPE_CHECKING:
    from .data import Dataset
    from .distributed import Graph

_C = ffi.integer_const("GRAFT_MPI_C")


class Ranks:
    """The ranks of an MPI communicator, for Trainer, train(), Dataset.open() and Model.load().

    `comm` is a communicator of mpi4py, which is duplicated; mpi4py may be built with Open MPI or MPICH. The library
    needs the transport module of that MPI. All calls with ranks are collective: all ranks make them in the same order.
    A failure of one rank raises the same exception on all ranks, with the failed rank in `rank`. If this package
    refuses an argument on one rank, this rank raises its own exception, and the others ArgumentError with its number.

    close() is collective too. The garbage collector does not call it, because it runs at a different time on each
    rank."""

    def __init__(self, comm: Any, *, context: Context | None = None) -> None:
        from mpi4py import MPI
        if not isinstance(comm, MPI.Comm):
            raise ArgumentError(f"comm is a {type(comm).__name__}, expected a communicator of mpi4py")
        self.context = context or Context()
        table, out = self.context.interface("graft_transport_api"), new("graft_transport")
        communicator = new("graft_communicator", bytes=MPI._sizeof(comm), kind=_C,
                           handle=ffi.cast("void *", MPI._addressof(comm)))
        self.context.call(table.open, self.context.handle, b"auto", communicator, out)
        self._begin(out)

    @classmethod
    def threads(cls, n_ranks: int) -> list[Ranks]:
        """Make ranks that are threads of this process. The result has one object for each thread, with its own
        context."""
        context = Context()
        all_of_them = ffi.new("graft_transport[]", n_ranks)
        for one in all_of_them:
            one.size = ffi.sizeof("graft_transport")
        context.call(context.interface("graft_transport_api").threads, context.handle, n_ranks, all_of_them)
        found = []
        for i in range(n_ranks):
            self, transport = object.__new__(cls), new("graft_transport")
            ffi.memmove(transport, all_of_them + i, ffi.sizeof("graft_transport"))
            self.context = Context()
            self._begin(transport)
            found.append(self)
        return found

    def _begin(self, transport: Any) -> None:
        self.transport = transport
        self.rank: int = transport.rank
        self.n_ranks: int = transport.n_ranks

    def distribute(self, dataset: Dataset) -> tuple[Any, Graph]:
        """The struct of a data set over these ranks, and its distributed graph."""
        from .distributed import Graph
        graph = Graph(self, dataset)
        struct = new("graft_dataset")
        ffi.memmove(struct, dataset._struct, ffi.sizeof("graft_dataset"))
        struct.over = graph._handle
        return struct, graph

    def close(self) -> None:
        """Close the transport, after all objects that were made with it. Collective."""
        if self.transport is not None:
            self.transport.close(self.transport.self)
            self.transport = None

    def __repr__(self) -> str:
        return f"<graft.Ranks: rank {self.rank} of {self.n_ranks}>"


def before_graph(ranks: Ranks | None) -> ContextManager[Any]:
    """Guard arguments that are read before all ranks open a data set or make a graph of one. If one rank refuses
    them, all ranks fail in the same way."""
    if ranks is None:
        return contextlib.nullcontext()
    context = ranks.context
    return Collective(context, context.interface("graft_graph_api").create, context.handle, ranks.transport, ffi.NULL,
                      ffi.NULL)
