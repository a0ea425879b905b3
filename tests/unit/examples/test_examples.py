#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of examples/ as their documentation says, and compares what they print with results computed by
hand: test_examples.py SMALLEST AGGREGATE BATCHES HALO PREDICT LIBGRAFT GRAFT-TRAIN ROOT. Prints TAP."""
import array
import ast
import filecmp
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

import compilers
import tap

TIMEOUT = 120

# A text as `apt-cache dumpavail` prints it. Each package tries one property. NAMES, EDGES and SPLIT were computed by
# hand.
ARCHIVE = """\
Package: xboard
Section: games
Depends: gnuchess (>= 6) | crafty | chess-engine
Description: graphical board for chess
 Its long form says sound, player, editor and agent.

Package: audacity
Version: 3.2
Section: sound
Depends: sox (>= 14.4) [amd64], lame:any | flac-encoder
Recommends: cmus [amd64], nonesuch
Description: Sound player and sound editor, in 3D

Package: cmus
Section: sound
Suggests: moc
Conflicts: exim4
Enhances: mutt
Description: small player for music

Package: crafty
Section: non-free/games
Suggests: xboard
Description: chess engine

Package: exim4
Section: mail
Provides: mail-transport-agent
Depends: mail-transport-agent
Description: agent for mail

Package: gnuchess
Section: games
Depends: libc6 (>= 2.36)
Suggests: xboard
Description: chess engine and board

Package: lame
Section: sound

Package: moc
Section: sound
Recommends: cmus | sox
Description: player for music on a console

Package: mutt
Version: 2.2
Section: mail
Recommends: default-mta | mail-transport-agent
Description: reader for mail

Package: mutt
Version: 2.1
Section: oldmail
Depends: xboard, tetris
Description: an older version

Package: neomutt
Section: mail
Pre-Depends: mutt
Provides: xboard
Description: reader for mail

this line has no mark, so it is no field
: and this one has no name
Section: oddities
Depends: xboard

Package:
Section: oddities

Package: nullmailer
Section: mail
Provides: mail-transport-agent
Description: agent for mail

Package: opensmtpd
Section: mail
Provides: smtp-server, mail-transport-agent (= 1)
Description: agent for mail

Package: pingus
Section: games
Depends: tetris,
 wesnoth
Description: game with penguins

Package: postfix
Section: mail
Provides: mail-transport-agent
Description: agent for mail

Package: sendmail-bin
Section: mail
Provides: mail-transport-agent
Description: agent for mail

Package: sox
Section: sound
Description: converter for sound

Package: tetris
Section: games
Suggests: xboard
Description: game with blocks


Package: wesnoth
Description: game with elves
"""
NAMES = """audacity cmus crafty exim4 gnuchess lame moc mutt neomutt nullmailer opensmtpd pingus postfix sendmail-bin
    sox tetris wesnoth xboard""".split()
CLASSES = ["games", "mail", "sound"]
LABELS = [2, 2, 0, 1, 0, 2, 2, 1, 1, 1, 1, 0, 1, 1, 2, 0, -1, 0]
SPLIT = [3, 1, 3, 3, 1, 1, 1, 3, 3, 2, 3, 2, 1, 1, 3, 2, 2, 3]
EDGES = """audacity-sox audacity-lame audacity-cmus cmus-moc moc-sox crafty-xboard gnuchess-xboard tetris-xboard
    exim4-nullmailer exim4-opensmtpd mutt-exim4 mutt-nullmailer mutt-opensmtpd neomutt-mutt pingus-tetris
    pingus-wesnoth""".split()
WIDTH = 256


def run(command, text=None):
    return subprocess.run(command, input=text or "", capture_output=True, text=True, timeout=TIMEOUT, check=False,
                          env=dict(os.environ, LC_ALL="C.UTF-8", GRAFT_LIBRARY=library, PYTHONDONTWRITEBYTECODE="1"))


def script(name, *args, text=None):
    return run([sys.executable, os.path.join(root, "examples", "debian-archive", name), *args], text)


def fine(name, result):
    return tap.ok(result.returncode == 0 and result.stderr == "", name, f"exit {result.returncode}", result.stdout,
                  result.stderr)


def refused(name, result, *words):
    """Check that a program ended with one line of its own that has all the words, and not with a traceback of
    Python."""
    lines = result.stderr.splitlines()
    tap.ok(result.returncode == 1 and len(lines) == 1 and all(word in lines[0] for word in words), name,
           f"exit {result.returncode}, expected 1 with {words}", result.stderr)


def read_npy(path):
    """Read a .npy file by the description of the format alone. The result is type, shape and values."""
    with open(path, "rb") as file:
        data = file.read()
    end = 10 + int.from_bytes(data[8:10], "little")
    head = ast.literal_eval(data[10:end].decode("ascii"))
    values = array.array({"<i4": "i", "<f4": "f", "|u1": "B"}[head["descr"]])
    values.frombytes(data[end:])
    if data[:8] != b"\x93NUMPY\x01\x00" or head["fortran_order"] or end % 64 != 0:
        raise ValueError(f"{path} is not in the format")
    return head["descr"], head["shape"], list(values)


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def test_smallest():
    """The graph is the path 0 - 1 - 2 - 3 and the single vertex 4. Vertex v has the features v + 1 and 10 (v + 1)."""
    expected = []
    for vertex, near in enumerate(([1], [0, 2], [1, 3], [2], [])):
        mean = sum(v + 1 for v in near) / len(near) if near else 0
        expected.append(f"  vertex {vertex}: mean of neighbours ({mean:g}, {10 * mean:g})")
    result = run([smallest, library])
    parts = re.split(r"^mxm\.kernel = (\w+)\n", result.stdout, flags=re.MULTILINE)
    said = {name: text.splitlines() for name, text in zip(parts[1::2], parts[2::2])}
    module = os.path.join(os.path.dirname(library), "graft_kernel_graphblas.so")
    for name in ("reference", "graphblas"):
        if name == "graphblas" and not os.path.exists(module):
            tap.skip("smallest: graphblas", "the module is not built")
            refused("smallest: the kernel that is missing is named", result, "smallest: ", "graphblas")
            return
        lines = said.get(name, [""])
        tap.ok(lines[0].startswith(name + " ran: ") and lines[1:] == expected,
               f"smallest: {name} runs and gives the means", result.stdout, result.stderr)
    fine("smallest: it ends well", result)


def test_aggregate():
    ring = [(v + 11) % 12 + (v + 1) % 12 for v in range(12)]
    result = run([aggregate, library])
    expected = " ".join(map(str, ring)) + " with 6 rows between 3 ranks\n"
    tap.ok(result.stdout == expected, "aggregate: three ranks sum their neighbours", result.stdout, result.stderr)
    fine("aggregate: it ends well", result)


def test_batches():
    line = re.compile(r"epoch (\d): 32 batches, 2000 seeds, (\d+) vertices, error (\d\.\d{3})\n")
    first, second = run([batches, library]), run([batches, library])
    found = line.findall(first.stdout)
    tap.ok(line.sub("", first.stdout) == "" and [int(epoch) for epoch, _, _ in found] == [0, 1, 2] and
           all(2000 < int(vertices) < 2000 * 40 and 0.5 < float(error) < 4 for _, vertices, error in found),
           "batches: each vertex is a seed once in an epoch, and means over few neighbours are near those over all",
           first.stdout, first.stderr)
    tap.ok(first.stdout == second.stdout and len({vertices for _, vertices, _ in found}) == 3,
           "batches: other neighbours in each epoch, the same ones in each run", first.stdout, second.stdout)
    fine("batches: it ends well", first)


def test_halo():
    side, heat = 12, [100.0] + [0.0] * 143
    near = [[u for u, there in ((v - side, v >= side), (v - 1, v % side > 0), (v + 1, v % side < side - 1),
                                (v + side, v < 144 - side)) if there] for v in range(144)]
    for _ in range(50):
        heat = [heat[v] + sum(0.2 * (heat[u] - heat[v]) for u in near[v]) for v in range(144)]
    result = run([halo, library])
    expected = "".join(f"rank {r}: 48 cells and a halo of {(12, 24, 12)[r]}, heat {sum(heat[48 * r:48 * r + 48]):.6f}\n"
                       for r in range(3))
    tap.ok(result.stdout == expected, "halo: three ranks simulate heat", result.stdout, expected, result.stderr)
    fine("halo: it ends well", result)


def test_predict(data):
    saved = f"{base}/saved"
    fine("graft-train saves a model", run([graft_train_api, data, "--set", "epochs=2", "layers=1", "--save", saved]))
    result = run([predict, library, f"{saved}/checkpoint.safetensors", data])
    tap.ok(re.match(r"sage of \d+ features and \d+ classes after 2 epochs\n  format = graft.model/1\n",
                    result.stdout) and re.search(r"^vertex 0: class \d+$", result.stdout, re.MULTILINE),
           "predict: a saved model predicts", result.stdout, result.stderr)
    fine("predict: it ends well", result)
    refused("predict: a missing model is named", run([predict, library, f"{base}/none", data]), "predict: ",
            f"{base}/none")


def test_no_library():
    refused("smallest: a missing library is named", run([smallest, f"{base}/no.so"]), "smallest: ", f"{base}/no.so")


def test_edges(folder):
    descr, shape, values = read_npy(f"{folder}/edges.npy")
    edges = list(zip(values[:len(values) // 2], values[len(values) // 2:]))
    tap.ok(descr == "<i4" and shape == (2, len(edges)), "edges: two rows of int32", descr, shape)
    tap.ok(edges == sorted(set(edges)), "edges: ascending, each once", edges)
    tap.ok(sorted((v, u) for u, v in edges) == edges and all(u != v for u, v in edges),
           "edges: in both directions, no loops", edges)
    found = {frozenset((NAMES[u], NAMES[v])) for u, v in edges}
    wanted = {frozenset(edge.split("-")) for edge in EDGES}
    tap.ok(found == wanted, "edges: those of the four relations, alternatives, and the first three that provide a name",
           "too many:", *map(sorted, found - wanted), "missing:", *map(sorted, wanted - found))


def test_features(folder):
    descr, shape, values = read_npy(f"{folder}/features.npy")
    tap.ok(descr == "<f4" and shape == (len(NAMES), WIDTH), "features: a row of float32 for each package", descr, shape)
    rows = [values[WIDTH * i:WIDTH * (i + 1)] for i in range(len(NAMES))]
    lengths = {name: math.hypot(*row) for name, row in zip(NAMES, rows)}
    wrong = {name: length for name, length in lengths.items() if abs(length - (name != "lame")) > 1e-6}
    tap.ok(not wrong, "features: rows of length 1, and of zeros without a description", wrong)
    expected = [0] * WIDTH
    for word in ("sound", "player", "and", "sound", "editor"):
        expected[zlib.crc32(word.encode()) % WIDTH] += 1
    length = math.hypot(*expected)
    differing = [i for i in range(WIDTH) if abs(rows[0][i] - expected[i] / length) > 1e-6]
    tap.ok(not differing, "features: hashed counts of the words of the short description", differing)


def test_make_dataset(folder):
    """Make the data set of packages, which later tests use."""
    with open(f"{base}/archive", "w", encoding="utf-8") as file:
        file.write(ARCHIVE)
    result = script("make_dataset.py", folder, "--input", f"{base}/archive")
    if not fine("make_dataset.py ends well", result):
        return False
    counts = f"{len(NAMES)} packages, {2 * len(EDGES)} directed edges, {len(CLASSES)} classes; "
    counts += ", ".join(f"{SPLIT.count(part)} to {verb}" for part, verb in ((1, "train"), (2, "validate"), (3, "test")))
    tap.ok(result.stdout.startswith(counts + " ("), "its last line has the counts", result.stdout, counts)
    tap.ok(read_lines(f"{folder}/names.txt") == NAMES, "names: those of the packages, in order, each once",
           read_lines(f"{folder}/names.txt"))
    tap.ok(read_lines(f"{folder}/classes.txt") == CLASSES, "classes: sections of what is a package, without their area",
           read_lines(f"{folder}/classes.txt"))
    found = read_npy(f"{folder}/labels.npy")
    tap.ok(found == ("<i4", (len(NAMES),), LABELS), "labels: of the first version, -1 without a section", found)
    found = read_npy(f"{folder}/split.npy")
    tap.ok(found == ("|u1", (len(NAMES),), SPLIT), "split: by the hash of the name", found)
    test_edges(folder)
    test_features(folder)
    result = script("make_dataset.py", f"{base}/again", "--input", "-", text=ARCHIVE)
    files = sorted(os.listdir(folder))
    same, differing, missing = filecmp.cmpfiles(folder, f"{base}/again", files, shallow=False)
    tap.ok(result.returncode == 0 and len(files) == 6 and same == files,
           "from standard input it writes the same six files", files, differing, missing, result.stderr)
    return True


def test_bad_input():
    for name, text in (("empty input", ""), ("input without a package", "Section: mail\n\nno field\n")):
        result = script("make_dataset.py", f"{base}/none", "--input", "-", text=text)
        refused(f"make_dataset.py: {name} is refused", result, "make_dataset.py: ", "no package", "apt-get update")
    refused("make_dataset.py: a missing file is named", script("make_dataset.py", f"{base}/none", "--input",
                                                               f"{base}/nothing"), "make_dataset.py: ", "nothing")
    tap.ok(not os.path.exists(f"{base}/none"), "and nothing was written")


def test_training(folder):
    """Train and predict on the packages. Later tests use the predictions and the report."""
    result = run([graft_train_api, folder, "--set", "layers=2", "hidden=16", "epochs=12", "dropout=0", "--json",
                  f"{base}/r.json", "--predict", f"{base}/p.npy"])
    if not tap.ok(result.returncode == 0, "graft-train reads the data set", result.stdout, result.stderr):
        return False
    report = read_json(f"{base}/r.json")
    facts = [report[key] for key in ("vertices", "edges", "features", "classes")]
    tap.ok(facts == [len(NAMES), 2 * len(EDGES), WIDTH, len(CLASSES)], "and finds in it what was written", facts)
    losses = [epoch["loss"] for epoch in report["history"]]
    tap.ok(len(losses) == 12 and losses[-1] < 0.5 * losses[0], "and learns from it", losses)
    return True


def test_show_predictions(folder):
    predicted = read_npy(f"{base}/p.npy")[2]
    tested = [i for i in range(len(NAMES)) if SPLIT[i] == 3]
    right = [i for i in tested if predicted[i] == LABELS[i]]
    result = script("show_predictions.py", folder, f"{base}/p.npy", "--right", "20", "--wrong", "20")
    fine("show_predictions.py ends well", result)
    share = 100 * len(right) / len(tested)
    tap.ok(f"In all, {len(right)} of {len(tested)} packages ({share:.1f} %)" in result.stdout and
           abs(read_json(f"{base}/r.json")["test_accuracy"] - share / 100) < 1e-6,
           "it counts what is right, as graft-train does", result.stdout)
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("    ")]
    wanted = [[NAMES[i], CLASSES[LABELS[i]]] for i in right]
    wanted += [[NAMES[i], CLASSES[predicted[i]] + ",", "Debian", "says", CLASSES[LABELS[i]]]
               for i in tested if i not in right]
    tap.ok(sorted(rows) == sorted(wanted), "it names what is right and what is wrong", result.stdout)
    refused("show_predictions.py: a file of another shape is refused",
            script("show_predictions.py", folder, f"{folder}/edges.npy"), "show_predictions.py: ", "edges.npy",
            f"(2, {2 * len(EDGES)})")


def test_plot_curve():
    refused("plot_curve.py: a missing report is named", script("plot_curve.py", f"{base}/no.json", f"{base}/c.png"),
            "plot_curve.py: ", "no.json")
    if shutil.which("gnuplot") is None:
        tap.skip("plot_curve.py draws a picture", "gnuplot is not installed")
        return
    result = script("plot_curve.py", f"{base}/r.json", f"{base}/c.png", "--title", "it's a 'test'")
    content = b""
    if os.path.exists(f"{base}/c.png"):
        with open(f"{base}/c.png", "rb") as file:
            content = file.read()
    tap.ok(result.returncode == 0 and content[:8] == b"\x89PNG\r\n\x1a\n" and content[12:16] == b"IHDR" and
           content[-8:-4] == b"IEND", "plot_curve.py draws a picture", result.stderr, content[:16])


def test_readme():
    """The excerpt of a host in README.md must be valid C when it stands in a function with the variables of the
    text."""
    with open(os.path.join(root, "README.md"), encoding="utf-8") as file:
        section = file.read().partition("\n## A host\n")[2].partition("\n## ")[0]
    fences = re.findall(r"^```c\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    if not tap.ok(len(fences) == 1, "README.md shows one host", section):
        return
    includes = [line for line in fences[0].splitlines() if line.startswith("#include")]
    body = [line for line in fences[0].splitlines() if not line.startswith("#include")]
    source = "\n".join([*includes, "int refuse(const char *message);",
                        "int host(const graft_dataset dataset, int32_t *labels);",
                        "int host(const graft_dataset dataset, int32_t *labels)", "{", *body, "return 0;", "}", ""])
    for compiler, standards in compilers.C.items():
        name = f"the host in README.md compiles, by {compiler}"
        if not compilers.is_there(compiler):
            tap.skip(name, f"{compiler} is not installed")
            continue
        worked, said = compilers.run([compiler, "-std=" + standards[0], *compilers.STRICT, "-fsyntax-only", "-I",
                                      os.path.join(root, "abi"), "-x", "c", "-"], source)
        tap.ok(worked and "graft_load(" in source, name, said)


if len(sys.argv) != 9 or not all(map(os.path.exists, sys.argv[1:])):
    print("Bail out! expected: smallest, aggregate, batches, halo, predict, libgraft.so, graft-train, root of source")
    sys.exit(1)
smallest, aggregate, batches, halo, predict, library, graft_train_api, root = map(os.path.abspath, sys.argv[1:])
with tempfile.TemporaryDirectory(prefix="graft-examples-") as base:
    test_smallest()
    test_aggregate()
    test_batches()
    test_halo()
    test_no_library()
    if test_make_dataset(f"{base}/data") and test_training(f"{base}/data"):
        test_show_predictions(f"{base}/data")
        test_predict(f"{base}/data")
        test_plot_curve()
    test_bad_input()
    test_readme()
tap.done()
