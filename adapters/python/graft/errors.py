# SPDX-License-Identifier: Apache-2.0
"""Exceptions. Each failed call of the library raises the class of its status, with the library's message."""
from __future__ import annotations

from typing import Any, NoReturn

from ._abi import STATUSES, ffi


class Error(Exception):
    """A failed call. Its str() is the message of the library: what was found, what was expected, and where."""

    status: int = 0
    """The status code, a negative number, such as -1 for ERR_ARG."""

    def __init__(self, message: str, *, status: int | None = None, where: str = "", native_code: int = 0,
                 rank: int = 0) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status
        self.where = where
        """The public call that failed, such as "graft.mxm/1 run"; empty if this package refused before a call."""
        self.native_code = native_code
        """The code of the library behind a module, or errno of a file operation; else 0."""
        self.rank = rank
        """The rank that failed; 0 on one process."""

    @property
    def name(self) -> str:
        """The name of the status, such as "ERR_ARG"."""
        return STATUSES.get(self.status, "ERR")


class ArgumentError(Error, ValueError):
    """An argument is null, out of range, or does not fit the others."""
    status = -1


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out, or option memory.limit would be exceeded."""
    status = -2


class VersionError(Error):
    """The library and this package have no version of the contract in common."""
    status = -3


class UnsupportedError(Error, NotImplementedError):
    """No available module can do this."""
    status = -4


class NotFoundError(Error, LookupError):
    """There is no such file, module, interface or item."""
    status = -5


class FormatError(Error, ValueError):
    """A file or a graph contradicts its own description."""
    status = -6


class FileError(Error):
    """A file operation failed; native_code is errno."""
    status = -7


class OptionError(Error, ValueError):
    """An option is unknown, or its value is out of range."""
    status = -8


class StateError(Error, RuntimeError):
    """The call does not fit the state of the object, or another call runs in the same context."""
    status = -9


class ForkedError(Error, RuntimeError):
    """The context belongs to the parent of this process."""
    status = -10


class ModuleError(Error, RuntimeError):
    """A module, or the library behind it, failed; native_code is its code."""
    status = -11


class PeerError(Error, ConnectionError):
    """A rank failed, or did not answer in time."""
    status = -12


class CancelledError(Error):
    """The program asked to cancel the call."""
    status = -13


class NonfiniteError(Error, ArithmeticError):
    """Training has diverged: a loss, gradient or weight is infinite or NaN."""
    status = -14


_KINDS = {kind.status: kind for kind in Error.__subclasses__()}


def new_error() -> Any:
    """Storage for the description of a failure."""
    return ffi.new("graft_error *", {"size": ffi.sizeof("graft_error")})


def text_of(chars: Any) -> str:
    return ffi.string(chars).decode("utf-8", "replace")


def raise_error(status: int, error: Any) -> NoReturn:
    raise _KINDS.get(status, Error)(text_of(error.message), status=status, where=text_of(error.where),
                                    native_code=error.native_code, rank=error.rank)
