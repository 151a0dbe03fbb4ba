"""Which parallel instance a key belongs to, today and after the job is rescaled.

A key has a hash code as Java computes it; a hash of that picks one of `max_parallelism` key groups,
for good. An operator instance owns a range of key groups, and only the ranges move on rescaling.

All arithmetic is that of Java: 32 bits that wrap around. Python's `hash` will not do: it is salted
for strings, so two processes would disagree.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable

from refimpl.errors import LocalUsageError
from refimpl.records.any_type import MAX_DEPTH
from refimpl.records.types import INT, TypeSerializer

__all__ = [
    "default_max_parallelism",
    "java_hash_code",
    "java_identity",
    "key_group_of",
    "key_group_range",
    "key_of_identity",
    "murmur_hash",
    "operator_index_of",
]

_MASK = 0xFFFFFFFF
_MAX_KEY_GROUPS = 1 << 15


def java_hash_code(key: object, key_type: TypeSerializer | None = None, levels: int = MAX_DEPTH) -> int:
    """`Object.hashCode` of the Java value that `key` stands for, from -2^31 to 2^31 - 1.

    A Python int is a Java Long, unless `key_type` is `INT`: the two differ for negative numbers. `levels` is how many
    tuples may be within each other; it is counted, as in `AnyType`, since a compiled function knows no bound.

    Raises:
        LocalUsageError: no hash is defined for this kind of key, or it is nested too deeply.
    """
    match key:
        case bool():
            return 1231 if key else 1237
        case int():
            return _signed(key) if key_type is INT else _signed(key ^ (key >> 32) & _MASK)
        case str():
            return _polynomial(memoryview(key.encode("utf-16-be", "surrogatepass")), 2, 0)
        case float():
            bits = struct.unpack(">q", struct.pack(">d", key))[0] if key == key else 0x7FF8 << 48
            return _signed(bits ^ (bits >> 32) & _MASK)
        case bytes():
            code = 1
            for byte in key:
                code = 31 * code + (byte - 256 if byte > 127 else byte) & _MASK
            return _signed(code)
        case tuple():
            if levels == 0:
                raise LocalUsageError(f"a key is nested too deeply: {MAX_DEPTH} levels are the most")
            fields = getattr(key_type, "fields", [None] * len(key))
            code = 0
            for field, part in zip(fields, key, strict=True):
                code = 31 * code + java_hash_code(part, field, levels - 1) & _MASK
            return _signed(code)
        case None:
            return 0
    raise LocalUsageError(
        f"a key of type {type(key).__name__} has no hash code; use an int, str, float, bool, bytes or a tuple of these"
    )


def java_identity(key: Hashable) -> Hashable:
    """What is equal for two keys if and only if `Object.equals` is true of the Java values they stand for.

    In Python 1, 1.0 and True are equal, and so are 0.0 and -0.0; a NaN is unequal to itself. In Java a Long, a Double
    and a Boolean differ, `Double.equals` tells the zeros apart, and NaN equals NaN. Keys are told apart as they are
    hashed, or one window would be two at another parallelism.
    """
    if type(key) in (str, int, bytes):
        return key
    match key:
        case bool():
            return bool, key
        case int():
            return int(key)
        case float():
            return float, struct.pack(">d", key) if key == key else None
        case str():
            return str(key)
        case tuple():
            return tuple(map(java_identity, key))
    return key


def key_of_identity(identity: Hashable) -> Hashable:
    """The key that `java_identity` made this of; of a subclass of a number or of str, a plain one."""
    match identity:
        case (type() as kind, part):  # no key has a class in it: that has no hash code
            if kind is bool:
                return part
            return struct.unpack(">d", part)[0] if isinstance(part, bytes) else math.nan
        case tuple():
            return tuple(map(key_of_identity, identity))
    return identity


def murmur_hash(code: int) -> int:
    """A hash of a 32-bit code, from 0 to 2^31 - 1.

    Flink:   MathUtils.murmurHash (util), 1.11.4
    """
    code = (code & _MASK) * 0xCC9E2D51 & _MASK
    code = _rotate_left(code, 15) * 0x1B873593 & _MASK
    code = _rotate_left(code, 13) * 5 + 0xE6546B64 & _MASK
    code ^= 4  # the length of the input in bytes
    code = (code ^ code >> 16) * 0x85EBCA6B & _MASK
    code = (code ^ code >> 13) * 0xC2B2AE35 & _MASK
    code = _signed(code ^ code >> 16)
    if code >= 0:
        return code
    return -code if code != -(2**31) else 0


def key_group_of(key: object, max_parallelism: int, key_type: TypeSerializer | None = None) -> int:
    """The key group of `key`, from 0 to `max_parallelism` - 1.

    Flink:   KeyGroupRangeAssignment.assignToKeyGroup (runtime.state), 1.11.4
    """
    return murmur_hash(java_hash_code(key, key_type)) % max_parallelism


def operator_index_of(key_group: int, max_parallelism: int, parallelism: int) -> int:
    """The operator instance that owns `key_group`.

    Flink:   KeyGroupRangeAssignment.computeOperatorIndexForKeyGroup, 1.11.4
    """
    return key_group * parallelism // max_parallelism


def key_group_range(operator_index: int, max_parallelism: int, parallelism: int) -> range:
    """The key groups of one operator instance.

    Flink:   KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex, 1.11.4
    """
    start = (operator_index * max_parallelism + parallelism - 1) // parallelism
    last = ((operator_index + 1) * max_parallelism - 1) // parallelism
    return range(start, last + 1)


def default_max_parallelism(parallelism: int) -> int:
    """Key groups for a job that did not say: 1.5 times the parallelism, a power of two, 128 to 32768.

    Flink:   KeyGroupRangeAssignment.computeDefaultMaxParallelism, 1.11.4
    """
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), 128), _MAX_KEY_GROUPS)


def _signed(code: int) -> int:
    code &= _MASK
    return code - 2**32 if code >= 2**31 else code


def _rotate_left(code: int, bits: int) -> int:
    return (code << bits | code >> 32 - bits) & _MASK


def _polynomial(raw: memoryview, width: int, code: int) -> int:
    for index in range(0, len(raw), width):
        code = 31 * code + int.from_bytes(raw[index : index + width], "big") & _MASK
    return _signed(code)
