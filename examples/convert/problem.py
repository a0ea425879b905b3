# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an input, and sizes as people write them."""
import re

MAX_VERTICES = 2**31 - 1  # the most that the library takes
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Problem(Exception):
    """A sentence for the user: what was found, what is expected, and where."""


def parse_size(text):
    """Bytes of "500M" or "1.5G"."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.strip().upper())
    if match is None:
        raise Problem(f"'{text}' is no size; expected a number with K, M, G or T, as in 500M")
    return int(float(match[1]) * UNITS[match[2]])


def show_size(size):
    for unit in ("T", "G", "M", "K"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.1f} {unit}B"
    return f"{size} bytes"
