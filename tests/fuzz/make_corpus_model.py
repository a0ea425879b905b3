# SPDX-License-Identifier: Apache-2.0
"""Writes the files in corpus_model again after a change of the format: PYTHONPATH=tests/harness python3
tests/fuzz/make_corpus_model.py build/graft-train. Files named good-... can be loaded. Each of the others has one
fault, which its name describes. Files have no checksums where a checksum would be found wrong before the fault."""
import copy
import json
import os
import struct
import subprocess
import sys
import tempfile

import small_data
from model_file import compact, pack, seal, seal_header, unpack, unseal

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus_model")
FIRST = "layers.0.weight_self"


def train(program, folder, *settings):
    """Train two epochs on a ring of six vertices, and save the model."""
    result = subprocess.run([program, f"{folder}/data", "--save", folder, "--set", "epochs=2", *settings],
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    with open(f"{folder}/checkpoint.safetensors", "rb") as file:
        return file.read()


def make_ring(folder):
    os.mkdir(folder)
    ends = [v for v in range(6)] + [(v + 1) % 6 for v in range(6)]
    small_data.write_npy(f"{folder}/edges.npy", "<i4", "i", (2, 6), ends)
    small_data.write_npy(f"{folder}/features.npy", "<f4", "f", (6, 3), [v % 5 - 2.0 for v in range(18)])
    small_data.write_npy(f"{folder}/labels.npy", "<i4", "i", (6,), [v % 2 for v in range(6)])
    small_data.write_npy(f"{folder}/split.npy", "|u1", "B", (6,), [1, 1, 1, 2, 3, 3])


def good_files(program, folder):
    files = {"good-state": train(program, folder, "model=sage", "layers=1")}
    files["good-appnp"] = train(program, folder, "model=appnp", "layers=2", "hidden=4", "label_rate=0.5")
    files["good-gat"] = train(program, folder, "model=gat", "layers=2", "hidden=4", "heads=2")
    files["good-history"] = train(program, folder, "model=gcn", "layers=2", "hidden=4", "batch_size=2", "history=full",
                                  "hec.codec=q8")
    header, data = unpack(files["good-state"])
    ours = dict(header["__metadata__"], content="weights", author='Zo\u00eb \u2603 \U0001f600 "quoted\\"')
    foreign = {name: dict(entry) for name, entry in header.items() if name.startswith("layers.")}
    begin = min(entry["data_offsets"][0] for entry in foreign.values())
    end = max(entry["data_offsets"][1] for entry in foreign.values())
    for entry in foreign.values():
        entry["data_offsets"] = [at - begin for at in entry["data_offsets"]]
    foreign["__metadata__"] = ours
    text = json.dumps(unseal(foreign), indent=1).encode()
    files["good-weights-foreign"] = struct.pack("<Q", len(text)) + text + data[begin:end]
    files["good-weights-sealed"] = pack(seal(foreign, data[begin:end]), data[begin:end])
    files["good-rewritten"] = rewritten(header, data)
    return files


def rewritten(header, data):
    """Write tensors and texts in another order, as other packages for this format do."""
    other, content = {"__metadata__": dict(reversed(header["__metadata__"].items()))}, b""
    for name in sorted(name for name in header if name != "__metadata__"):
        begin, end = header[name]["data_offsets"]
        other[name] = dict(header[name], data_offsets=[len(content), len(content) + end - begin])
        content += data[begin:end]
    return pack(other, content)


def bad_objects(header, ended):
    """Files with wrong headers that are JSON objects, as {name: change of the header}."""
    first = header[FIRST]
    begin, end = first["data_offsets"]

    def texts(**changes):
        return lambda h: h["__metadata__"].update({key.replace("__", "."): value for key, value in changes.items()})

    def tensor(**changes):
        return lambda h: h[FIRST].update(changes)

    def extra(shape, offsets):
        return lambda h: h.update(extra={"dtype": "F32", "shape": shape, "data_offsets": offsets})

    return {
        "another-format": texts(format="pt"),
        "features-2g": texts(n_features="2147483648"),
        "features-huge": texts(n_features="99999999999"),
        "features-text": texts(n_features="3x"),
        "features-zero": texts(n_features="0"),
        "layers-64": texts(model__layers="64"),
        "metadata-number": texts(epoch=2),
        "metadata-many": lambda h: h["__metadata__"].update({f"k{i}": "v" for i in range(300)}),
        "texts-255": lambda h: h["__metadata__"].update({f"k{i}": "v" for i in range(255 - len(h["__metadata__"]))}),
        "option-of-later": texts(model__quantum="1"),
        "option-path": texts(**{"model.partition.file": "/etc"}),
        "option-wrong": texts(model__dropout="1.5"),
        "no-metadata": lambda h: h.pop("__metadata__"),
        "backward": tensor(data_offsets=[end, begin]),
        "beyond": tensor(data_offsets=[begin, 2 ** 50]),
        "gap": tensor(data_offsets=[begin + 4, end + 4]),
        "overlap": tensor(data_offsets=[begin - 4, end - 4]),
        "dtype-bf16": tensor(dtype="BF16"),
        "dtype-f64": lambda h: h[FIRST].update(dtype="F64", shape=[3, 1]),
        "shape-other": tensor(shape=[2, 3]),
        "shape-wraps": tensor(shape=[2 ** 31, 2 ** 31, 2 ** 31, 8]),
        "count-long": tensor(data_offsets=[begin, 10 ** 18]),
        "tensor-missing": lambda h: h.update({"renamed": h.pop(FIRST)}),
        "tensor-extra-empty": extra([0, 1000000], [ended, ended]),
    }


def bad_tables(good):
    """Files in which the table of stale rows has another type or shape, or occurs twice."""
    header, data = unpack(good)
    files = {}
    for name, changes in (("table-dtype", {"dtype": "F64"}), ("table-dims", {"shape": [5, 1]})):
        changed = unseal(copy.deepcopy(header))
        changed["history.1.rows"].update(changes)
        files[name] = pack(changed, data)
    begin, end = header["history.1.rows"]["data_offsets"]
    again = dict(header["history.1.rows"], data_offsets=[len(data), len(data) + end - begin])
    text = f'{compact(unseal(copy.deepcopy(header)))[:-1]},"history.1.rows":{compact(again)}}}'
    files["table-twice"] = pack(text.encode(), data + data[begin:end])
    return files


def bad_texts(text):
    """Files whose headers are not JSON objects."""
    first = text.index('"release":')
    twice = text[:-1] + ',"' + FIRST + '":' + text[text.index("{", text.index(FIRST)):].split("}")[0] + "}}"
    return {
        "metadata-twice": text[:first] + '"release":"x",' + text[first:],
        "tensor-twice": twice,
        "comma": text[:-1] + ",}",
        "behind": text + "{}",
        "control": text.replace("sage", "s\x01ge", 1),
        "count-float": text.replace("[0,8]", "[0.0,8]", 1),
        "escape-half": text.replace("sage", "s\\ud83d", 1),
        "escape-nul": text.replace("sage", "s\\u0000", 1),
        "braces": "{" * 4000,
        "nested": '{"a":' + "[" * 4000,
    }


def sealed_files(good):
    """Files with checksums."""
    header, data = unpack(good)
    text = good[8:len(good) - len(data)]
    end = text.rindex(b"}") + 1
    one = copy.deepcopy(header)
    del one["__metadata__"]["crc32c.header"]
    other = copy.deepcopy(header)
    del other["__metadata__"]["crc32c"]
    short = copy.deepcopy(header)
    short["__metadata__"]["crc32c"] = short["__metadata__"]["crc32c"][8:]
    seal_header(short)
    escaped = text[:end].replace(b"sage", b"s\\u0061ge", 1)
    tabs = text[:end].replace(b",", b",\t", 1)
    padded = text[:end] + b" " * (-end % 8 + 8)
    return {
        "crc-wrong": good[:-40] + bytes([good[-40] ^ 1]) + good[-39:],
        "crc-header-missing": pack(one, data),
        "crc-tensors-missing": pack(other, data),
        "crc-header-wrong": good.replace(b'"epoch":"2"', b'"epoch":"3"'),
        "crc-short": pack(short, data),
        "sealed-escape": pack(escaped, data),
        "sealed-space": pack(tabs, data),
        "sealed-padding": struct.pack("<Q", len(padded)) + padded + data,
        "sealed-unpadded": struct.pack("<Q", end) + text[:end] + data,
        "length-beyond": struct.pack("<Q", len(good)) + good[8:],
        "length-huge": b"\xff" * 8 + good[8:],
        "length-only": good[:8],
        "longer": good + b"\0",
        "truncated-data": good[:-1],
        "truncated-header": good[:200],
        "empty": b"",
    }


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_ring(f"{folder}/data")
        files = good_files(sys.argv[1], folder)
    good = files["good-state"]
    header, data = unpack(good)
    plain = unseal(copy.deepcopy(header))
    ended = len(data)
    for name, change in bad_objects(plain, ended).items():
        changed = copy.deepcopy(plain)
        change(changed)
        files[name] = pack(changed, data)
    for name, text in bad_texts(compact(plain)).items():
        files[name] = pack(text.encode(), data)
    files["utf8-bad"] = pack(compact(plain).replace("sage", "s?ge", 1).encode().replace(b"s?ge", b"s\xffge"), data)
    epoch, weight = plain["progress.epoch"]["data_offsets"][0], plain[FIRST]["data_offsets"][0]
    negative = data[:epoch] + struct.pack("<q", -1) + data[epoch + 8:]
    nan = data[:weight] + struct.pack("<f", float("nan")) + data[weight + 4:]
    files["epoch-negative"] = pack(seal(copy.deepcopy(header), negative), negative)
    files["nan"] = pack(seal(copy.deepcopy(header), nan), nan)
    files.update(sealed_files(good))
    files.update(bad_tables(files["good-history"]))
    for name, content in files.items():
        with open(f"{FOLDER}/{name}.safetensors", "wb") as file:
            file.write(content)
    for name in sorted(set(os.listdir(FOLDER)) - {f"{name}.safetensors" for name in files}):
        print("not written:", name)


main()
