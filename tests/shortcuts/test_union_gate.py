"""Several gates read as one, with runs of buffers."""

from __future__ import annotations

from refimpl.shortcuts.channels import FastInputGate, FastUnionInputGate
from tests.refimpl.consumer.test_union_gate import Bench

FAST = (FastInputGate, FastUnionInputGate)


def test_each_exchange_has_the_same_turn_here_too() -> None:
    bench = Bench([2, 1], FAST)
    bench.fill(0, 0, 2)
    bench.fill(0, 1, 2)
    bench.fill(1, 0, 4)
    assert [index for index, _, _ in iter(bench.poll, None)] == [0, 2, 1, 2] * 2


def test_a_run_comes_only_of_the_one_gate_in_line() -> None:
    bench = Bench([2, 1], FAST)
    bench.fill(1, 0, 4)
    assert bench.gate.poll_run(9)[0] in (0, 2)  # a local channel gives its buffers one by one, and is not skipped
    bench.fill(0, 0, 4)
    assert bench.gate.poll_run(9) == (0, [])
    assert [index for index, _, _ in iter(bench.poll, None)] == [2, 0] * 4
