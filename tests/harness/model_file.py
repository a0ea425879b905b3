# SPDX-License-Identifier: Apache-2.0
"""Reads and writes model files by the description in graft_model.h alone, as another program would."""
import json
import struct

BLOCK = 1 << 20


def make_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = make_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def unseal(header):
    """Remove the checksums, like a program that changes weights or texts and does not know about checksums."""
    for key in ("crc32c", "crc32c.header"):
        header.get("__metadata__", {}).pop(key, None)
    return header


def tensors_of(header):
    return sorted((name.encode(), entry) for name, entry in header.items() if name != "__metadata__")


def seal_header(header):
    """Add the checksum of the header, which covers the checksums of the tensors."""
    metadata = header["__metadata__"]
    metadata.pop("crc32c.header", None)
    items = [f"{key}\0{value}\0".encode() for key, value in metadata.items()]
    for name, entry in tensors_of(header):
        items.append(name + f"\0{entry['dtype']}\0{compact(entry['shape'])}\0".encode())
    metadata["crc32c.header"] = f"{sum(map(crc32c, items)) % 2 ** 32:08x}"
    return header


def seal(header, data):
    """Add the checksums of the header and of the data."""
    digits = ""
    for _, entry in tensors_of(header):
        begin, end = entry["data_offsets"]
        for at in range(begin, end, BLOCK):
            digits += f"{crc32c(data[at:min(at + BLOCK, end)]):08x}"
    unseal(header)["__metadata__"]["crc32c"] = digits
    return seal_header(header)


def pack(header, data):
    """The bytes of a file. The header is given as an object, or as its bytes."""
    text = header if isinstance(header, bytes) else compact(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def unpack(content):
    """Split a file into its header, as an object, and its data."""
    start = 8 + struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:start]), content[start:]
