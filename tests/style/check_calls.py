#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which room of the plugin calls which: check_calls.py BUILD. A call is a symbol that the object files of one
room lack and those of another define. A room may call the rooms that it may include, and no two rooms may call each
other, directly or in a cycle. Inside a room at most three files may call each other in a cycle; exceptions.txt lists
known exceptions. Calls through a table of functions are not visible here; they are the way to remove a cycle."""
import collections
import glob
import os
import re
import subprocess
import sys

from check_includes import ROOMS
import exceptions
import tap

MAX_CIRCLE = 3

OBJECT = re.compile(r"/(?:plugin_)?([a-z]+)_(\w+)\.c\.o$")
SYMBOL = re.compile(r"^(?:[0-9a-f]+)?\s+([A-Za-z]) (\w+)$")


def symbols(paths):
    """Yield (room, file, defined symbols, undefined symbols) of every object file."""
    for path in paths:
        room, name = OBJECT.search(path).groups()
        lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
        found = [match.groups() for match in map(SYMBOL.match, lines) if match]
        yield (room, name, {symbol for kind, symbol in found if kind in "TDRBVW"},
               {symbol for kind, symbol in found if kind == "U"})


def calls(objects):
    """The calls between rooms as {(room, other room): symbols}."""
    home = {symbol: room for room, _, defined, _ in objects for symbol in defined}
    found = collections.defaultdict(set)
    for room, name, _, undefined in objects:
        for symbol in undefined & set(home):
            if home[symbol] != room:
                found[room, home[symbol]].add(f"{symbol} in {name}.c")
    return found


def circles(arrows):
    """The sets of rooms, or of files, that call each other in a cycle."""
    rooms = {room for arrow in arrows for room in arrow}
    reach = {room: {other for first, other in arrows if first == room} for room in rooms}
    for middle in reach:
        for room in reach:
            if middle in reach[room]:
                reach[room] |= reach[middle]
    return {frozenset(other for other in reach if other in reach[room] and room in reach[other])
            for room in reach if room in reach[room]}


def inside(objects):
    """The calls inside each room, as {room: {(file, other file)}}."""
    home = {symbol: (room, name) for room, name, defined, _ in objects for symbol in defined}
    found = collections.defaultdict(set)
    for room, name, _, undefined in objects:
        found[room] |= {(name, home[symbol][1]) for symbol in undefined & set(home)
                        if home[symbol][0] == room and home[symbol][1] != name}
    return found


def large_circles(arrows_of_rooms):
    """The rooms where more than MAX_CIRCLE files call each other, as {room: fault}."""
    found = {}
    for room, arrows in arrows_of_rooms.items():
        largest = max(circles(arrows), key=len, default=())
        if len(largest) > MAX_CIRCLE:
            found[room] = f"{len(largest)} files of {room}/ call each other in a circle: {', '.join(sorted(largest))}"
    return found


def words(symbols_of_arrow):
    few = sorted(symbols_of_arrow)[:4]
    return ", ".join(few) + (f" and {len(symbols_of_arrow) - 4} more" if len(symbols_of_arrow) > 4 else "")


def main():
    build = sys.argv[1]
    paths = sorted(glob.glob(os.path.join(build, "libgraft.so*.p", "plugin_*.o")) +
                   glob.glob(os.path.join(build, "plugin", "libsimd_generic.a.p", "*.o")))
    objects = list(symbols(paths))
    found = calls(objects)
    tap.ok(len(found) > 20, "calls between rooms are found at all", len(objects), found)
    wrong = [f"{room} calls {other}: {words(which)}" for (room, other), which in sorted(found.items())
             if room != "entry" and other not in ["base", *ROOMS.get(room, [])]]
    tap.ok(not wrong, "a room calls only those that it may include", *wrong)
    knots = sorted(circles(set(found)), key=sorted)
    details = [f"{room} -> {other}: {words(found[room, other])}" for knot in knots
               for room in sorted(knot) for other in sorted(knot) if (room, other) in found]
    tap.ok(not knots, "rooms do not call each other in a circle", *details)
    tap.ok(circles({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")}) == {frozenset("abc")}, "a circle is found")
    exceptions.check("cycle", large_circles(inside(objects)), f"at most {MAX_CIRCLE} files of a room are a circle")
    ring = [("a", "b"), ("b", "c"), ("c", "d")]
    tap.ok(list(large_circles({"of_4": {*ring, ("d", "a")}, "of_3": {*ring, ("c", "a")}})) == ["of_4"],
           "a circle of four files is found")
    tap.done()


if __name__ == "__main__":
    main()
