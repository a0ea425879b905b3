# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of long work on standard error. On a terminal one line is overwritten; otherwise a line is
printed from time to time."""
import sys
import time


class Progress:
    def __init__(self, quiet=False):
        self.quiet = quiet
        self.terminal = sys.stderr.isatty()
        self.last = time.monotonic()
        self.shown = False

    def show(self, what, done, total=None):
        now = time.monotonic()
        if self.quiet or now - self.last < (0.5 if self.terminal else 10):
            return
        self.last, self.shown = now, True
        of = f" of {total:,} ({100 * done // total} %)" if total else ""
        line = f"{what}: {done:,}{of}"
        if self.terminal:
            line = f"\r{line:<78}"
        print(line, end="" if self.terminal else "\n", file=sys.stderr, flush=True)

    def end(self):
        """Clear the line for what is printed next."""
        if self.terminal and self.shown:
            print("\r" + " " * 78, end="\r", file=sys.stderr, flush=True)
        self.shown = False
