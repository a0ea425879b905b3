# SPDX-License-Identifier: Apache-2.0
"""The Test Anything Protocol for checks in Python; tap.h does the same for checks in C."""
import sys

_count = 0


def ok(condition, name, *details):
    """Print one check. If it fails, the details, which may be long, are printed too."""
    global _count
    _count += 1
    print(f"{'ok' if condition else 'not ok'} {_count} - {name}")
    if not condition:
        for line in "\n".join(str(detail) for detail in details).splitlines():
            print("# " + line)
    sys.stdout.flush()
    return bool(condition)


def skip(name, reason):
    """Print a check that cannot be made here, with the reason."""
    global _count
    _count += 1
    print(f"ok {_count} - {name} # SKIP {reason}")


def done():
    print(f"1..{_count}")
