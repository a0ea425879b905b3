# SPDX-License-Identifier: Apache-2.0
"""Test Anything Protocol for checks written in Python; tap.h is the same for C."""
import sys

_count = 0


def ok(condition, name, *details):
    """One check; `details`, which may be long, are shown when it fails."""
    global _count
    _count += 1
    print(f"{'ok' if condition else 'not ok'} {_count} - {name}")
    if not condition:
        for line in "\n".join(str(detail) for detail in details).splitlines():
            print("# " + line)
    sys.stdout.flush()
    return bool(condition)


def skip(name, reason):
    """A check that cannot be made here."""
    global _count
    _count += 1
    print(f"ok {_count} - {name} # SKIP {reason}")


def done():
    print(f"1..{_count}")
