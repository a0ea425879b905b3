# SPDX-License-Identifier: Apache-2.0
"""Runs examples/heat over Open MPI: test_heat.py ROOT LAUNCHER LIBRARY PYTHON."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
import zlib

import tap
import vtu

ROOT, LAUNCHER, LIBRARY, PYTHON = sys.argv[1:]
COMPILER, SIDE = "mpicc.openmpi", 11
LINE = re.compile(r"^ +(\d+) +(\S+) +(\S+)$", re.MULTILINE)


def output(*command, **more):
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200,
                            check=False, **more)
    return result.returncode, result.stdout


def table(ranks, folder, program):
    """The errors in the output of a run, as {step: (error of the surrogate, error of an unchanged state)}."""
    os.mkdir(folder)
    code, text = output(LAUNCHER, "-n", str(ranks), program, LIBRARY, folder, str(SIDE), "12", "10",
                        env=os.environ | {"GRAFT_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"})
    lines = {int(step): (float(error), float(change)) for step, error, change in LINE.findall(text)}
    tap.ok(code == 0 and set(lines) == {1, 10}, f"{ranks} ranks: it trains, and compares after 1 and 10 steps", code,
           text)
    return lines


def whole(folder, ranks):
    """Read the values at all nodes at the last time, and check that the files of the ranks fit together."""
    times = [(float(d.get("timestep")), d.get("file")) for d in xml.parse(f"{folder}/heat.pvd").iter("DataSet")]
    pieces = [p.get("Source") for p in xml.parse(f"{folder}/{times[-1][1]}").iter("Piece")]
    nodes, cells, agree = {}, 0, True
    for piece in pieces:
        found, count = vtu.read(f"{folder}/{piece}")
        agree = agree and all(nodes.get(point, value) == value for point, value in found.items())
        nodes.update(found)
        cells += count
    tap.ok(len(times) == 2 and times[0][0] == 0 and abs(times[1][0] - 0.32) < 1e-12 and len(pieces) == ranks,
           f"{ranks} ranks: two times, and a piece of each rank", times, pieces)
    tap.ok(agree and len(nodes) == SIDE * SIDE and cells == 2 * (SIDE - 1) ** 2,
           f"{ranks} ranks: the pieces make up the square, with equal values where they meet", len(nodes), cells)
    return nodes


def near(a, b, bound):
    return abs(a - b) <= bound * max(abs(a), abs(b))


def check_runs(folder, program):
    one, three = (table(ranks, f"{folder}/{ranks}", program) for ranks in (1, 3))
    if not set(one) == set(three) == {1, 10}:
        return
    tap.ok(all(near(one[k][1], three[k][1], 1e-3) and near(one[k][0], three[k][0], 0.05) for k in one),
           "errors do not depend on the ranks", one, three)
    a, b = whole(f"{folder}/1", 1), whole(f"{folder}/3", 3)
    tap.ok(max(abs(a[p][0] - b[p][0]) for p in a) < 1e-12, "the solver gives the same")
    apart = (sum((a[p][1] - b[p][1]) ** 2 for p in a) / len(a)) ** 0.5
    tap.ok(apart < 0.05 * one[10][0], "and the surrogate nearly", apart, one[10][0])
    change = (sum((s - t) ** 2 for s, t in a.values()) / len(a)) ** 0.5
    tap.ok(near(change, one[10][0], 1e-3), "files have the error of the table", change, one[10][0])
    code, text = output(PYTHON, f"{ROOT}/examples/heat/draw.py", f"{folder}/3", f"{folder}/heat.png")
    if tap.ok(code == 0, "the picture is drawn", text):
        with open(f"{folder}/heat.png", "rb") as file:
            png = file.read()
        at = png.index(b"IDAT")
        rows = zlib.decompress(png[at + 4:at + 4 + struct.unpack(">I", png[at - 4:at])[0]])
        width, height = struct.unpack(">II", png[16:24])
        tap.ok(png[:4] == b"\x89PNG" and len(rows) == height * (1 + 3 * width) and len(set(rows)) > 50,
               "and has colours", width, height, len(rows))


def main():
    if shutil.which(COMPILER) is None:
        tap.skip("the program over MPI", f"{COMPILER} is not installed")
        tap.done()
        return
    with tempfile.TemporaryDirectory() as folder:
        sources = [f"{ROOT}/examples/heat/{name}.c" for name in ("main", "solver", "vtu")]
        code, text = output(COMPILER, "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/abi", f"-I{ROOT}/adapters/mpi",
                            *sources, "-o", f"{folder}/heat", "-ldl", "-lm")
        if tap.ok(code == 0, "it is compiled", text):
            check_runs(folder, f"{folder}/heat")
            code, text = output(LAUNCHER, "-n", "2", f"{folder}/heat", "/nowhere.so")
            tap.ok(code > 0 and "/nowhere.so" in text, "without the library it says so", text)
    tap.done()


if __name__ == "__main__":
    main()
