# SPDX-License-Identifier: Apache-2.0
"""Reads the files that examples/heat/vtu.c writes."""
import struct
import xml.etree.ElementTree as xml


def read(path):
    """The points and fields of a .vtu file as {(x, y): (solver, surrogate)}, and its number of cells."""
    with open(path, "rb") as file:
        text = file.read()
    begin = text.index(b"<AppendedData")
    blocks = {}
    for array in xml.fromstring(text[:begin] + b"</VTKFile>").iter("DataArray"):
        at = text.index(b"_", begin) + 1 + int(array.get("offset"))
        (size,) = struct.unpack_from("<Q", text, at)
        blocks[array.get("Name")] = text[at + 8:at + 8 + size]
    points, solver, surrogate = (struct.unpack(f"<{len(blocks[name]) // 8}d", blocks[name])
                                 for name in ("Points", "solver", "surrogate"))
    cells = struct.unpack(f"<{len(blocks['connectivity']) // 4}i", blocks["connectivity"])
    return ({(points[3 * i], points[3 * i + 1]): (solver[i], surrogate[i]) for i in range(len(solver))},
            len(cells) // 3)
