# SPDX-License-Identifier: Apache-2.0
"""Reads numbers from text files, plain or compressed with gzip, in blocks of whole lines. Lines end with \\n, \\r\\n or
\\r. Errors name the line and column."""
import gzip
import re
import warnings
import zlib

import numpy

from problem import Problem, show_size

COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
TEXT = bytes(byte for byte in range(256) if not CONTROL.match(bytes([byte])))
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
READ_BYTES = 2**23
WHOLE = re.compile(rb"[+-]?\d+")


class Block:
    """Whole lines of a file. `counts` has the number of fields of each line; comments have none."""

    def __init__(self, path, first_line, data, separator=None):
        self.path, self.first_line = path, first_line
        self.comments = []
        if b"#" in data or b"%" in data:
            self.comments = [data.count(b"\n", 0, match.start()) for match in COMMENT.finditer(data)]
            data = COMMENT.sub(lambda match: b" " * len(match.group()), data)
        if data.translate(None, TEXT):
            self.refuse_match(CONTROL, data, lambda match: f"the control byte {match[0][0]}, expected text")
        self.data = data.translate(bytes.maketrans(separator, b" ")) if separator else data
        ends = numpy.flatnonzero(numpy.frombuffer(data, numpy.uint8) == 10)
        self.counts = numpy.diff(numpy.searchsorted(numpy.flatnonzero(self.field_begins()), ends), prepend=0)
        if separator:
            self.check_separators(data, separator)

    def field_begins(self):
        blank = numpy.frombuffer(self.data, numpy.uint8) <= 32
        begins = ~blank
        begins[1:] &= blank[:-1]
        return begins

    def check_separators(self, data, separator):
        """No field is empty or has a blank inside. Without blanks it is enough to count, which is faster."""
        if b" " not in data and b"\t" not in data and (
                data.count(separator) + numpy.count_nonzero(self.counts) == self.counts.sum()):
            return
        mark = re.escape(separator)
        self.refuse_match(re.compile(rb"(?:^|%b)[ \t]*(?=%b)|%b[ \t]*$" % (mark, mark, mark), re.MULTILINE), data,
                          lambda _: "an empty field, expected a number")
        self.refuse_match(re.compile(rb"(?<=[^\s%b])[ \t]+(?=[^\s%b])" % (mark, mark)), data,
                          lambda _: f"a blank within a field, expected '{separator.decode()}' between two fields")

    def refuse_match(self, pattern, data, found):
        match = pattern.search(data)
        if match:
            raise Problem(f"{self.at_byte(data, match.start())}: found {found(match)}")

    def at_byte(self, data, offset):
        line = data.count(b"\n", 0, offset)
        return f"'{self.path}', line {self.first_line + line}, column {offset - data.rfind(bytes([10]), 0, offset)}"

    def place(self, field):
        """The position of the field with this number among all fields of the block."""
        return self.at_byte(self.data, int(numpy.flatnonzero(self.field_begins())[field]))

    def field(self, field):
        offset = int(numpy.flatnonzero(self.field_begins())[field])
        return self.data[offset:offset + 100].split(maxsplit=1)[0].decode("utf-8", "replace")

    def refuse(self, field, expected):
        raise Problem(f"{self.place(field)}: found '{self.field(field)}', expected {expected}")

    def line_of(self, row):
        """The position of a line, without a column."""
        return f"'{self.path}', line {self.first_line + int(row)}"

    def values(self, dtype, hint=""):
        """Convert all fields to an array. `hint` is added to an error in the first line."""
        total = int(self.counts.sum())
        if total == 0:
            return numpy.empty(0, dtype)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = numpy.fromstring(self.data, dtype, sep=" ")
            if len(found) == total:
                return found
        except (DeprecationWarning, ValueError):
            pass
        whole = numpy.issubdtype(dtype, numpy.integer)
        for number, field in enumerate(self.data.split()):
            if not (WHOLE.fullmatch(field) if whole else is_number(field)):
                self.refuse(number, ("a whole number" if whole else "a number")
                            + (hint if number < self.counts[0] else ""))
        raise Problem(f"{self.place(0)}: the numbers from here on cannot be read")


def is_number(field):
    try:
        float(field)
        return b"_" not in field
    except ValueError:
        return False


def open_bytes(path):
    """Open the file. It is decompressed if it begins as gzip files do."""
    file = open(path, "rb")
    magic = file.read(2)
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if magic == b"\x1f\x8b" else file


def pieces(file, size):
    """The contents of a file, in which every line ends with \\n. The last piece is empty."""
    held, first = b"", True
    while read := file.read(size):
        read, first = held + (read.removeprefix(BYTE_ORDER_MARK) if first else read), False
        held = b"\r" if read.endswith(b"\r") else b""  # perhaps of \r\n
        if b"\r" in read:
            read = read.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if read:
            yield read
    if held:
        yield b"\n"
    yield b""


def blocks(path, limit, separator=None, skip=0):
    """Yield the blocks of a file, of at most `limit` bytes each. A line may have half of that. `skip` lines are left
    out at the beginning."""
    line, rest = 1, b""
    with open_bytes(path) as file:
        reader = pieces(file, min(limit // 2, READ_BYTES))
        while True:
            try:
                read = next(reader)
            except EOFError:
                raise Problem(f"'{path}' is cut off: its compressed data end in line "
                              f"{line + rest.count(bytes([10]))}") from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise Problem(f"'{path}' is damaged after line {line}: {error}") from None
            rest += read
            if not read and rest and not rest.endswith(b"\n"):
                rest += b"\n"
            end = rest.rfind(b"\n") + 1
            while skip and end:
                cut = rest.find(b"\n") + 1
                rest, end, line, skip = rest[cut:], end - cut, line + 1, skip - 1
            if end:
                yield Block(path, line, rest[:end], separator)
                line += rest.count(b"\n", 0, end)
                rest = rest[end:]
            elif len(rest) > limit // 2:
                raise Problem(f"'{path}', line {line} has more than {show_size(limit // 2)}, the most that this "
                              "--memory allows for a line")
            if not read:
                return


def first_line(path):
    """The first line with fields, which shows how the fields of a file are separated."""
    for block in blocks(path, 2**16):
        for line in block.data.split(b"\n"):
            if line.strip():
                return line
    return b""


def whole_numbers(path, limit, columns=1):
    """Yield the rows of a .csv file of whole numbers, as arrays [rows, columns]."""
    for block in blocks(path, limit, b","):
        yield block, table(block, numpy.int64, columns)


def table(block, dtype, columns):
    """Convert the fields of a block to rows, all of which must have this number of columns."""
    wrong = numpy.flatnonzero((block.counts != columns) & (block.counts > 0))
    values = block.values(dtype)
    if len(wrong):
        raise Problem(f"{block.line_of(wrong[0])}: found {block.counts[wrong[0]]} columns, expected {columns}")
    return values.reshape(-1, columns)
