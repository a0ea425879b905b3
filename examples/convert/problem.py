# SPDX-License-Identifier: Apache-2.0
"""Errors of inputs, and sizes as people write them."""
import re

MAX_VERTICES = 2**31 - 1  # the largest number that the library accepts
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Problem(Exception):
    """A message for the user: what was found, what is expected, and where."""


def parse_size(text):
    """Convert a size such as "500M" or "1.5G" to bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.strip().upper())
    if match is None:
        raise Problem(f"'{text}' is no size; expected a number with K, M, G or T, as in 500M")
    return int(float(match[1]) * UNITS[match[2]])


def show_size(size):
    for unit in ("T", "G", "M", "K"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.1f} {unit}B"
    return f"{size} bytes"
