"""Thrift's compact protocol, in which Parquet files describe themselves: structs in and out, nothing lost.

A struct is a dictionary from the numbers of its fields, in the order they were written, to pairs of type and
value. Values are integers, bytes, truth values, further structs, and lists as pairs of type and values; eight
bytes of a floating number stay as they are. Fields that nobody here has heard of are kept like all others.
"""

from __future__ import annotations

from typing import Any

Field = tuple[int, Any]
Struct = dict[int, Field]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, _MAP, STRUCT = range(1, 13)
DEEPEST = 32  # structs and lists within each other; those of Parquet stand in fewer than ten


class NotThriftError(ValueError):
    """These bytes are no struct of the compact protocol, or one of maps, which Parquet has not."""


def read_struct(data: bytes) -> Struct:
    """Return the struct that all of `data` stands for."""
    reader = _Reader(data)
    try:
        struct = reader.struct(0)
    except IndexError:
        raise NotThriftError("the struct has no end") from None
    if reader.place != len(data):
        raise NotThriftError("something follows the struct")
    return struct


def write_struct(struct: Struct) -> bytes:
    """Return the bytes of a struct, in the shortest form, which is the one that all writers choose."""
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


def varint(number: int) -> bytes:
    """Return the bytes of a number that is not negative."""
    out = bytearray()
    _write_varint(out, number)
    return bytes(out)


class _Reader:
    """A place in some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def struct(self, depth: int) -> Struct:
        if depth > DEEPEST:
            raise NotThriftError("structs within structs without end")
        fields: Struct = {}
        number = 0
        while head := self.byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self.integer()
            if number in fields:
                raise NotThriftError(f"field {number} is there twice")
            fields[number] = (kind, kind == TRUE if kind in (TRUE, FALSE) else self.value(kind, depth))
        return fields

    def value(self, kind: int, depth: int) -> Any:
        if I16 <= kind <= I64:
            return self.integer()
        if kind == BINARY:
            return self.bytes(self.varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET):
            return self.list(depth + 1)
        if kind == DOUBLE:
            return self.bytes(8)
        if TRUE <= kind <= BYTE:  # truth values in a list take a byte each
            return self.byte()
        raise NotThriftError(f"type {kind} is not known")

    def list(self, depth: int) -> tuple[int, list[Any]]:
        if depth > DEEPEST:
            raise NotThriftError("lists within lists without end")
        head = self.byte()
        size, kind = head >> 4, head & 15
        if size == 15:
            size = self.varint()
        if size > len(self.data) - self.place:
            raise NotThriftError("a list is longer than what follows")
        return kind, [self.value(kind, depth) for _ in range(size)]

    def byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def bytes(self, size: int) -> bytes:
        start, self.place = self.place, self.place + size
        if self.place > len(self.data):
            raise NotThriftError("text is longer than what follows")
        return self.data[start : self.place]

    def integer(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > 63:
                raise NotThriftError("a number has more than 64 bits")


def _write_struct(out: bytearray, struct: Struct) -> None:
    before = 0
    for number, (kind, value) in struct.items():
        if 0 < number - before <= 15:
            out.append((number - before) << 4 | kind)
        else:
            out.append(kind)
            _write_integer(out, number)
        before = number
        if kind > FALSE:
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if I16 <= kind <= I64:
        _write_integer(out, value)
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        inner, values = value
        if len(values) < 15:
            out.append(len(values) << 4 | inner)
        else:
            out.append(0xF0 | inner)
            _write_varint(out, len(values))
        for one in values:
            _write_value(out, inner, one)
    elif kind == DOUBLE:
        out += value
    else:
        out.append(value)


def _write_integer(out: bytearray, number: int) -> None:
    _write_varint(out, number << 1 if number >= 0 else ~(number << 1))


def _write_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
