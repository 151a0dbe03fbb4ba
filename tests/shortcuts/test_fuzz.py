"""The hostile inputs of `tests/fuzz`, for ends that take shortcuts: the same laws."""

from __future__ import annotations

from dataclasses import replace

import pytest

import refimpl.shortcuts.makers  # noqa: F401 (loaded before memory is counted)
from refimpl.exchange import SubpartitionReader
from refimpl.memory import BufferSlice
from refimpl.shortcuts.turns import FastPartitionRequestQueue
from tests.fuzz.harness import fault_in
from tests.fuzz.inputs import Input
from tests.fuzz.sessions import numbered_input

NUM_BATCHES, BATCH = 20, 500
MOST_INPUTS = 2_000


def numbered_fast(seed: str, number: int) -> Input:
    return replace(numbered_input(seed, number), shortcuts=True)


@pytest.mark.slow
@pytest.mark.sampled(one_in=4)
@pytest.mark.parametrize("seed", [f"test-{number}" for number in range(NUM_BATCHES)])
def test_whatever_comes_nothing_breaks(seed: str) -> None:
    for number in range(BATCH):
        fault = fault_in(numbered_fast(seed, number), is_weighed=number % 64 == 0)
        assert fault is None, fault.story


@pytest.mark.slow
def test_lent_memory_that_is_used_again_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = FastPartitionRequestQueue._lend

    def lend(
        queue: FastPartitionRequestQueue,
        by: SubpartitionReader,
        taken: BufferSlice,
        backlog: int,
        pieces: list[bytes | memoryview],
    ) -> None:
        real(queue, by, taken, backlog, pieces)
        queue.lent._lent.pop()[1].recycle()
        pieces[-1].obj[:] = bytes(len(pieces[-1].obj))

    monkeypatch.setattr(FastPartitionRequestQueue, "_lend", lend)
    faults = (fault_in(numbered_fast("mutants", number)) for number in range(MOST_INPUTS))
    assert any(fault is not None and "changed while it was lent" in fault.story for fault in faults)
