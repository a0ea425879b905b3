#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw the last time of a run, solver beside surrogate: draw.py FOLDER PICTURE.png

The files are read as ParaView reads them: the .pvd, the .pvtu of its last time, and the .vtu of each rank.
"""
import os
import struct
import sys
import xml.etree.ElementTree as xml
import zlib

PIXELS, GAP = 320, 16


def arrays(path):
    """Read the arrays of a .vtu file with raw appended data, as {name: numbers}."""
    with open(path, "rb") as file:
        text = file.read()
    begin = text.index(b"<AppendedData")
    data = text.index(b"_", begin) + 1
    root = xml.fromstring(text[:begin] + b"</VTKFile>")
    kinds, found = {"Float64": "d", "Int32": "i", "UInt8": "B"}, {}
    for array in root.iter("DataArray"):
        at = data + int(array.get("offset"))
        (size,) = struct.unpack_from("<Q", text, at)
        kind = kinds[array.get("type")]
        found[array.get("Name")] = struct.unpack_from(f"<{size // struct.calcsize(kind)}{kind}", text, at + 8)
    return found


def color(share):
    """A color between dark blue (0) and white (1), by way of red and yellow."""
    share = min(max(share, 0), 1) * 3
    return bytes(int(255 * min(max(part, 0), 1)) for part in (share, share - 1, max(share - 2, 0.35 - share)))


def fill(rows, left, points, values, cells, largest):
    """Draw the triangles of a rank, with linear interpolation between their nodes."""
    for c in range(0, len(cells), 3):
        (ax, ay, a), (bx, by, b), (cx, cy, d) = [
            (points[3 * k] * PIXELS, (1 - points[3 * k + 1]) * PIXELS, values[k]) for k in cells[c:c + 3]]
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        for y in range(max(int(min(ay, by, cy)), 0), min(int(max(ay, by, cy)) + 1, PIXELS)):
            for x in range(max(int(min(ax, bx, cx)), 0), min(int(max(ax, bx, cx)) + 1, PIXELS)):
                px, py = x + 0.5 - ax, y + 0.5 - ay
                s = (px * (cy - ay) - (cx - ax) * py) / area
                t = ((bx - ax) * py - px * (by - ay)) / area
                if s >= -1e-9 and t >= -1e-9 and s + t <= 1 + 1e-9:
                    at = 3 * (left + x)
                    rows[y][at:at + 3] = color((a + s * (b - a) + t * (d - a)) / largest)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, rows):
    header = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
                   chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) + chunk(b"IEND", b""))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, picture = sys.argv[1:]
    last = list(xml.parse(f"{folder}/heat.pvd").iter("DataSet"))[-1].get("file")
    sources = [piece.get("Source") for piece in xml.parse(f"{folder}/{last}").iter("Piece")]
    ranks = [arrays(os.path.join(folder, source)) for source in sources]
    largest = max(max(rank["solver"]) for rank in ranks) or 1
    rows = [bytearray(b"\xff" * 3 * (2 * PIXELS + GAP)) for _ in range(PIXELS)]
    for rank in ranks:
        for number, name in enumerate(("solver", "surrogate")):
            fill(rows, number * (PIXELS + GAP), rank["Points"], rank[name], rank["connectivity"], largest)
    write_png(picture, rows)


if __name__ == "__main__":
    main()
