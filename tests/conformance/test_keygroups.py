"""Keys to key groups to subtasks, as `KeyGroupRangeAssignment` and `MathUtils` computed them."""

from __future__ import annotations

import pytest

from refimpl.producer import (
    default_max_parallelism,
    java_hash_code,
    key_group_of,
    key_group_range,
    murmur_hash,
    operator_index_of,
)
from refimpl.records import INT, LONG, STRING

TOPIC = "keygroups"
BY_VERSION = False

TYPES = {"int": INT, "long": LONG, "string": STRING}


def check_assign(case: dict) -> None:
    max_parallelism, parallelism = case["max_parallelism"], case["parallelism"]
    for row in case["rows"]:
        key, key_type = row["key"], TYPES[row["type"]]
        assert java_hash_code(key, key_type) == row["hash"], row
        group = key_group_of(key, max_parallelism, key_type)
        assert group == row["key_group"], row
        assert operator_index_of(group, max_parallelism, parallelism) == row["operator_index"], row


def check_ranges(case: dict) -> None:
    max_parallelism, parallelism = case["max_parallelism"], case["parallelism"]
    ranges = [key_group_range(index, max_parallelism, parallelism) for index in range(parallelism)]
    assert [[groups[0], groups[-1]] for groups in ranges] == case["ranges_inclusive"]
    owners = case["operator_of_key_group"]
    assert [operator_index_of(group, max_parallelism, parallelism) for group in range(len(owners))] == owners


def test_keys_belong_where_flink_puts_them(case: dict) -> None:
    match case["kind"]:
        case "murmur":
            assert [[code, murmur_hash(code)] for code, _ in case["pairs"]] == case["pairs"]
        case "assign":
            check_assign(case)
        case "ranges":
            check_ranges(case)
        case "default_max_parallelism":
            assert [[p, default_max_parallelism(p)] for p, _ in case["pairs"]] == case["pairs"]
        case kind:
            pytest.skip(f"kind {kind} is not described in the format")
