# SPDX-License-Identifier: Apache-2.0
"""Contexts: one instance of the library, with its options and modules."""
from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import Any, Callable, Iterator

from . import _library, interrupt
from ._abi import ABI_VERSION, IDS, ffi
from .errors import (ArgumentError, CancelledError, PeerError, StateError, VersionError, new_error, raise_error,
                     text_of)

_INTERFACES = {"graft_mxm_api": IDS["GRAFT_MXM_ID"], "graft_data_api": IDS["GRAFT_DATA_ID"],
               "graft_train_api": IDS["GRAFT_TRAIN_ID"], "graft_report_api": IDS["GRAFT_REPORT_ID"],
               "graft_group_api": IDS["GRAFT_GROUP_ID"], "graft_model_api": IDS["GRAFT_MODEL_ID"],
               "graft_transport_api": IDS["GRAFT_TRANSPORT_ID"], "graft_graph_api": IDS["GRAFT_GRAPH_ID"],
               "graft_aggregate_api": IDS["GRAFT_AGGREGATE_ID"], "graft_halo_api": IDS["GRAFT_HALO_ID"],
               "graft_mesh_api": IDS["GRAFT_MESH_ID"], "graft_network_api": IDS["GRAFT_NETWORK_ID"],
               "graft_stream_api": IDS["GRAFT_STREAM_ID"], "graft_sample_api": IDS["GRAFT_SAMPLE_ID"]}
_LOG_LEVELS = (10, 20, 30, 40)  # the levels of module logging that correspond to the levels of the library

Log = Callable[[int, str], None]

_contexts: weakref.WeakSet[Context] = weakref.WeakSet()


def _complete_types() -> None:
    """Complete all structs. cffi does so when they are first used, but if two threads do it at once, cffi 2.0
    aborts."""
    for name in ffi.list_types()[0]:
        if ffi.typeof(name).kind != "struct":
            continue
        try:
            ffi.sizeof(name)
        except ffi.error:
            continue  # its fields are not declared
        ffi.typeof(name).fields


_complete_types()


def new(kind: str, /, **fields: Any) -> Any:
    """A struct of the contract with its size set, and the other fields zero."""
    try:
        return ffi.new(kind + " *", {"size": ffi.sizeof(kind), **fields})
    except (OverflowError, TypeError):
        _refuse_field(kind, fields)
        raise


def _refuse_field(kind: str, fields: dict[str, Any]) -> None:
    """Raise an exception that names the first field whose value does not fit its type."""
    types = dict(ffi.typeof(kind).fields)
    for name, value in fields.items():
        try:
            ffi.new(kind + " *", {name: value})
        except (OverflowError, TypeError):
            bits = 8 * ffi.sizeof(types[name].type)
            is_integer = "int" in types[name].type.cname
            expected = f"an integer of {bits} bits" if is_integer else f"a value of type {types[name].type.cname}"
            raise ArgumentError(f"{name} is {value!r}, expected {expected}") from None


def text_or_none(chars: Any) -> str | None:
    return text_of(chars) if chars else None


def to_dict(struct: Any) -> dict[str, Any]:
    """The numbers and texts in a struct as {name: value}."""
    found: dict[str, Any] = {}
    for name, field in ffi.typeof(struct).item.fields:
        value = getattr(struct, name)
        if field.type.kind == "primitive" and name != "size" and not name.startswith("reserved"):
            found[name] = value
        elif field.type.kind == "pointer" and field.type.item.cname == "char":
            found[name] = text_or_none(value)
    return found


def path_bytes(path: str | os.PathLike[str]) -> bytes:
    """A path for the library, terminated by a byte 0."""
    found = os.fsencode(path)
    if b"\0" in found:
        raise ArgumentError(f"path {path!r} has a byte 0, expected none")
    return found


def option_text(value: object) -> str:
    """Convert a Python value to the text of an option."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(option_text(one) for one in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _log_to_logging(level: int, message: str) -> None:
    import logging
    logging.getLogger("graft").log(level, "%s", message)


class Context:
    """One instance of the library. Contexts share nothing.

    Options are keyword arguments, or a dict for options with a point in their name: ``Context({"mxm.kernel": "simd"},
    threads=2)``. `log` receives (level, message), with the levels of the module logging; without it, messages go to the
    logger "graft". A context runs one call at a time: calls from several threads wait for each other, without the GIL.
    """

    def __init__(self, options: dict[str, object] | None = None, *, library: str | os.PathLike[str] | None = None,
                 log: Log | None = None, **more: object) -> None:
        self._library = _library.load(library)
        self._lock = threading.RLock()
        _contexts.add(self)
        self._to_free: deque[tuple[Any, ...]] = deque()
        self._interrupted = False
        self._tables: dict[str, Any] = {}
        self._host = self._new_host(log or _log_to_logging)
        opened, error = ffi.new("graft_api **"), new_error()
        status = self._library.graft_open(ABI_VERSION, ABI_VERSION, self._host, opened, error)
        if status < 0:
            raise_error(status, error)
        self._api = opened[0]
        self._handle = self._api.context
        self._close = weakref.finalize(self, self._api.close, self._handle)
        self._close.atexit = False
        try:
            for key, value in {**(options or {}), **more}.items():
                self[key] = value
        except BaseException:
            self.close()
            raise

    def _new_host(self, log: Log) -> Any:
        @ffi.callback("void(void *, graft_log_level, const char *)")
        def receive(_: Any, level: int, message: Any) -> None:
            log(_LOG_LEVELS[level], text_of(message))

        self._receive = receive  # the function must live as long as the context
        return new("graft_host", log=receive)

    # ---- calls ----

    def interface(self, table: str) -> Any:
        """Get the table of an interface by its type, such as "graft_mxm_api"."""
        if table not in self._tables:
            found = ffi.cast(table + " *", self._api.get_interface(self.handle, _INTERFACES[table].encode()))
            if not found or found.size < ffi.sizeof(table):
                raise VersionError(f"{_INTERFACES[table]} of Graft {self.version} is older than this package, or "
                                   "missing")
            self._tables[table] = found
        return self._tables[table]

    def call(self, function: Any, *arguments: Any) -> int:
        """Call a function of the library, whose last argument is an error, and raise its error."""
        if self._interrupted:
            self._forget_interrupt()
        error = new_error()
        with self._lock:
            status = function(*arguments, error)
        self._free_waiting()
        if status < 0:
            raise_error(status, error)
        return status

    def call_long(self, function: Any, *arguments: Any) -> int:
        """Make a call in one process that checks for cancel(). Ctrl-C cancels it, and KeyboardInterrupt is raised."""
        is_late = True
        while is_late:
            error = new_error()
            listener = interrupt.begin(self._interrupt)
            try:
                with self._lock:
                    try:
                        status = function(*arguments, error)
                    finally:
                        # Ctrl-C may have come after the last check of an earlier call, which KeyboardInterrupt ended.
                        is_late = self._interrupted and error.code == CancelledError.status
                        if is_late:
                            self._interrupted = False
            finally:
                if listener is not None:
                    listener.end()
        self._free_waiting()
        if status < 0:
            raise_error(status, error)
        return status

    def _interrupt(self) -> None:
        self._interrupted = True
        self._api.cancel(self._handle)

    def _forget_interrupt(self) -> None:
        """Clear the request of a Ctrl-C that arrived after the last check of its call. The call that finds the request
        cannot be repeated: the other ranks would not repeat it."""
        transports, groups = self.interface("graft_transport_api"), self.interface("graft_group_api")
        transport, group = new("graft_transport"), ffi.new("graft_group **")
        with self._lock:
            if transports.threads(self.handle, 1, transport, ffi.NULL) < 0:
                return  # another call is running, whose callback this is; it may still find the request
            if groups.create(self.handle, transport, group, ffi.NULL) >= 0:
                groups.agree(group[0], 0, ffi.NULL)  # this call finds the request
                self._interrupted = False
                groups.destroy(group[0])
            transport.close(transport.self)

    def owner(self, thing: object, function: Any, *arguments: Any) -> weakref.finalize:
        """Let an object of the library live as long as the Python object `thing`. The returned function frees it
        earlier."""
        finalizer = weakref.finalize(thing, self._free, function, *arguments)
        finalizer.atexit = False
        return finalizer

    def _free(self, *what: Any) -> None:
        """Free an object now, or after the call of another thread. It never waits, because the garbage collector calls
        it in any thread, which may hold locks that the other thread needs."""
        self._to_free.append(what)
        self._free_waiting()

    def _free_waiting(self) -> None:
        while self._to_free and self._lock.acquire(blocking=False):
            try:
                while self._to_free:
                    function, *arguments = self._to_free.popleft()
                    function(*arguments)
            finally:
                self._lock.release()

    def enumerate(self, function: Any, kind: str, *first: Any) -> Iterator[Any]:
        """Yield the structs that a function returns by number, until there are no more."""
        from .errors import NotFoundError
        index = 0
        while True:
            item = new(kind)
            try:
                self.call(function, *first, index, item)
            except NotFoundError:
                return
            yield item
            index += 1

    @property
    def handle(self) -> Any:
        if not self._close.alive:
            raise StateError("the context was closed")
        return self._handle

    # ---- options and modules ----

    @property
    def version(self) -> str:
        """The release of the library."""
        return text_of(self._api.version)

    def options(self) -> dict[str, dict[str, Any]]:
        """All options: {key: {"value", "default", "type", "range", "group", "help", "needs", "source", "live"}}."""
        found = {}
        for one in self.enumerate(self._api.option_info, "graft_option", self.handle):
            texts = {name: text_or_none(getattr(one, name))
                     for name in ("value", "type", "range", "group", "help", "needs", "source")}
            found[text_of(one.key)] = {**texts, "default": text_of(one.default_value), "live": bool(one.live)}
        return found

    def __getitem__(self, key: str) -> str:
        options = self.options()
        if key not in options:
            self._set(key, "")  # the message of the library names the most similar option
        return options[key]["value"]

    def _set(self, key: str, value: str) -> None:
        if "\0" in key + value:
            raise ArgumentError(f"option {key!r} is {value!r}, which has a character 0")
        self.call(self._api.set, self.handle, key.encode(), value.encode())

    def __setitem__(self, key: str, value: object) -> None:
        self._set(key, option_text(value))

    def modules(self) -> list[dict[str, Any]]:
        """List kernels, dense modules and transports: those that are built in, loaded or found, and those that
        cannot be used, with the reason."""
        return [{"kind": text_of(one.kind), "name": text_of(one.name), "path": text_or_none(one.path),
                 "state": one.state, "detail": text_or_none(one.detail)}
                for one in self.enumerate(self._api.module_info, "graft_module_entry", self.handle)]

    def cancel(self) -> None:
        """Ask the call that runs in this context, or the next one, to end with CancelledError. From any thread."""
        self._interrupted = False  # this request must not be cleared
        self._api.cancel(self.handle)

    # ---- end ----

    def close(self) -> None:
        """Free the context, after a call of another thread. Its objects are freed with it, as soon as Python no longer
        uses them."""
        with self._lock:
            self._close()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<graft.Context of Graft {self.version}{'' if self._close.alive else ', closed'}>"


class Collective:
    """A call that all ranks make, with the reading of its arguments:

        with Collective(context, function, handle, ffi.NULL) as call:
            arguments = ...                # may raise an exception
            call(handle, arguments)

    If a rank raises an exception before the call, the other ranks would wait for it. So it calls the function with the
    arguments given first, which the library refuses on all ranks, and raises its exception then; or PeerError, if ranks
    no longer reach each other. The begin() of a pair does not wait for other ranks: with `ending`, the function that
    ends it and its arguments, it keeps the exception, which end() raises. KeyboardInterrupt is not kept: the pair is
    ended and it is raised, so that no end() is due."""

    def __init__(self, context: Context, function: Any, *refused: Any, ending: tuple[Any, ...] = ()) -> None:
        self._context, self._function, self._refused, self._ending = context, function, refused, ending
        self._is_made = False
        self._kept: Exception | None = None

    def __enter__(self) -> Collective:
        self._is_made = False
        return self

    def __call__(self, *arguments: Any) -> int:
        self._is_made = True
        try:
            return self._context.call(self._function, *arguments)
        except (TypeError, OverflowError):  # cffi raises these before it calls the function
            self._is_made = False
            raise

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> bool:
        if self._is_made or error is None:
            return False
        if self._refuses(error, self._context.call, self._function, *self._refused) or not self._ending:
            return False
        if not isinstance(error, Exception):
            self._refuses(error, self._context.call, *self._ending)
            return False
        self._kept = error
        return True

    @staticmethod
    def _refuses(error: BaseException, call: Callable[..., Any], *arguments: Any) -> bool:
        """Make a call that fails because of `error`, and return whether it has failed. A failure that has another
        reason, and ends all communication, is raised."""
        try:
            call(*arguments)
        except PeerError as dead:
            if isinstance(error, Exception):
                raise dead from error
            return True
        except Exception:
            return True
        return False

    def end(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Make the other call of a pair, which fails on all ranks if one rank has refused its begin()."""
        kept, self._kept = self._kept, None
        if kept is None:
            return call(*arguments)
        self._refuses(kept, call, *arguments)
        raise kept


def _renew_locks() -> None:
    """Make new locks in a child process, because the threads that held the locks do not exist there."""
    global _default_lock
    _default_lock = threading.Lock()
    for context in list(_contexts):
        context._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_locks)

_default: Context | None = None
_default_process = -1
_default_lock = threading.Lock()


def default_context() -> Context:
    """The context of calls without a context. A child process after fork() gets its own."""
    global _default, _default_process
    with _default_lock:
        if _default is None or not _default._close.alive or _default_process != os.getpid():
            _default, _default_process = Context(), os.getpid()
        return _default

