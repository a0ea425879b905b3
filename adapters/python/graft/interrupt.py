# SPDX-License-Identifier: Apache-2.0
"""Handles Ctrl-C during a long call. Python raises KeyboardInterrupt in the main thread only when the call has
returned, which may be minutes later. Another thread therefore learns of the signal and cancels the call."""
from __future__ import annotations

import os
import signal
import socket
import threading
from typing import Callable

_hears: _Listener | None = None


class _Listener:
    """A thread that reads the numbers of signals as Python receives them (signal.set_wakeup_fd). A process has only
    one, which is never closed, because Python may still write to its socket."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.cancel: Callable[[], None] | None = None
        self._reads, self._writes = socket.socketpair()
        self._writes.setblocking(False)
        self._next = -1  # the program's own file for signals
        threading.Thread(target=self._listen, name="graft-interrupt", daemon=True).start()

    def begin(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel
        found = signal.set_wakeup_fd(self._writes.fileno(), warn_on_full_buffer=False)
        if found != self._writes.fileno():
            self._next = found

    def end(self) -> None:
        self.cancel = None
        signal.set_wakeup_fd(self._next)

    def _listen(self) -> None:
        while True:
            numbers = self._reads.recv(64)
            cancel = self.cancel
            if cancel is not None and signal.SIGINT in numbers:
                cancel()
            if self._next >= 0:
                try:
                    os.write(self._next, numbers)
                except OSError:
                    pass


def begin(cancel: Callable[[], None]) -> _Listener | None:
    """Call cancel() at each SIGINT until end() of the result is called. The result is None if the program does not
    want KeyboardInterrupt, or if this is not the thread in which it is raised."""
    global _hears
    if threading.current_thread() is not threading.main_thread() or \
            signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return None
    if _hears is None or _hears.process != os.getpid():
        _hears = _Listener()
    _hears.begin(cancel)
    return _hears
