"""A task whose records come many at a time: the tests of the book's task with fast parts, then what it saves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from refimpl.drivers.control import pause_ms
from refimpl.records import MAX_WATERMARK, CheckpointBarrier, StreamRecord
from refimpl.shortcuts.input import FastSourceInput
from refimpl.shortcuts.task import FastTask
from refimpl.task import Progress, SinkOperator
from tests.refimpl.task import test_task
from tests.refimpl.task.test_task import *  # noqa: F403 - the same tests
from tests.refimpl.task.test_task import Wire, chain_of, records, sink_task, source_task
from tests.shortcuts.fast_parts import fast_in


@pytest.fixture(autouse=True, scope="module")
def _fast_parts() -> Iterator[None]:
    """The tests find fast parts under the names of the book's."""
    with fast_in(test_task):
        yield


class AsksForRecords(SinkOperator):
    """Says what is done with a record, and nothing of values."""

    def __init__(self, records: list[StreamRecord]) -> None:
        super().__init__(print)
        self.records = records

    def process(self, record: StreamRecord) -> None:
        self.records.append(record)


@pytest.mark.parametrize("num_records", [3, 40])
def test_an_operator_with_a_process_of_its_own_gets_records(num_records: int) -> None:
    """Also where its class could do with values, and its input has a run of them."""
    wire, arrived = Wire(segment=2_600), []
    task = FastTask("sink-0", chain_of(AsksForRecords(arrived)), wire.input, [])
    wire.write(*range(num_records))
    wire.partition.flush_all()
    task.step()
    assert (arrived, task.chain.num_records_in) == (records(*range(num_records)), num_records)


def test_a_source_goes_on_by_itself_as_long_as_there_is_more_and_room() -> None:
    wire = Wire(buffers=9, segment=1_000)
    task = source_task(range(10), wire, batch=4)
    assert task.poll()
    task.process()
    assert task.progress is Progress.IDLE  # nobody has been told yet
    for num_steps in (2, 3, 4):
        assert task.go_on()
        assert (task.progress, task.num_steps) == (Progress.MADE, num_steps)
        task.process()
    assert not task.go_on()  # the end is told as usual
    assert task.emit() is Progress.DONE
    assert wire.read() == [*records(*range(10)), MAX_WATERMARK]


def test_a_slow_source_that_goes_on_behind_a_barrier_rests_after_its_records() -> None:
    """The barrier alone was no work, what comes behind it is: else nothing slows the source until its next poll."""
    wire = Wire(buffers=9, segment=1_000)
    task = source_task(range(10), wire, batch=4)
    task.rest_ms = 50
    task.submit(partial(task.checkpoints.pass_on, CheckpointBarrier(1, 0)))
    assert task.poll()
    task.process()
    assert pause_ms(task) == 0
    assert task.go_on()
    task.process()
    assert pause_ms(task) == 50


@pytest.mark.parametrize("what", ["mail", "no room", "nothing there", "no source"])
def test_a_step_is_as_usual_where_something_is_to_be_done_for_it(what: str) -> None:
    class Dry:
        def read(self, _max_records: int) -> list[StreamRecord]:
            return []

        def close(self) -> None: ...

    wire, asked = Wire(buffers=2 if what == "no room" else 9), []
    task = source_task(range(100), wire)
    if what == "nothing there":
        task.input = FastSourceInput("source", 0, Dry(), 4)
    elif what == "no source":
        wire.write(*range(9))
        task = sink_task(wire, asked.append)
    assert task.poll()
    task.process()
    if what == "mail":
        task.submit(lambda: asked.append("mail"))
    assert not task.go_on()
    assert task.num_steps == 1
    task.emit()
    assert task.step() is (Progress.BACKPRESSURED if what == "no room" else Progress.MADE)
    if what == "mail":
        assert asked == ["mail"]
        assert task.go_on()
