"""Sources: a batch each time the task allows one, event time's end behind the last, and the reader's own failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.records import MAX_WATERMARK, RecordBatch, StreamRecord
from refimpl.task import IterableReader, SourceInput


class Scripted:
    """A reader that answers what it was told to; an answer that is an exception is raised."""

    def __init__(self, *answers: Sequence[StreamRecord] | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []
        self.is_closed = False

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        self.asked.append(max_records)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.is_closed = True


def read(source: SourceInput) -> list[object]:
    """One turn: take, then everything it brings."""
    source.take()
    elements = []
    while (element := source.next_element()) is not None:
        elements.append(element)
    source.recycle()
    return elements


# -- a reader of anything iterable -----------------------------------------------------------------


def test_values_come_in_batches_and_then_the_end() -> None:
    reader = IterableReader("abc")
    assert reader.read(2) == [StreamRecord("a"), StreamRecord("b")]
    assert reader.read(2) == [StreamRecord("c")]
    assert reader.read(2) is None
    assert reader.read(2) is None


def test_a_value_that_is_a_record_keeps_its_time() -> None:
    assert IterableReader([StreamRecord(1, 5), 2]).read(9) == [StreamRecord(1, 5), StreamRecord(2)]


def test_no_value_is_drawn_before_it_is_asked_for() -> None:
    drawn: list[int] = []

    def values() -> Iterator[int]:
        for number in range(9):
            drawn.append(number)
            yield number

    reader = IterableReader(values())
    assert drawn == []
    reader.read(2)
    assert drawn == [0, 1]


# -- the input of a source task --------------------------------------------------------------------


def test_a_batch_is_read_only_when_its_turn_comes_and_not_while_the_task_polls() -> None:
    """Taking happens under the driver's exclusion, reading does not: a slow reader stops nobody."""
    reader = Scripted([StreamRecord(1)], None)
    source = SourceInput("flights", 0, reader, 7)
    assert source.next_element() is None
    assert source.take() == 1
    assert (reader.asked, source.is_drained) == ([], False)
    assert source.next_element() == StreamRecord(1)
    assert (reader.asked, source.is_drained) == ([7], True)
    assert source.next_element() is None
    assert reader.asked == [7]


def test_the_last_element_ends_event_time() -> None:
    source = SourceInput("flights", 0, Scripted([StreamRecord(1)], None), 7)
    assert read(source) == [StreamRecord(1)]
    assert (source.is_ready, source.is_finished) == (True, False)
    assert read(source) == [MAX_WATERMARK]
    assert (source.is_ready, source.is_finished) == (False, True)
    assert (source.take(), read(source)) == (0, [])


def test_a_source_that_has_ended_is_finished_only_when_its_last_element_is_out() -> None:
    source = SourceInput("flights", 0, Scripted([StreamRecord(1), StreamRecord(2)], None), 7)
    source.take()
    assert source.next_element() == StreamRecord(1)
    source.take()  # also one that reads the end before the batch is out
    for element in (StreamRecord(2), MAX_WATERMARK):
        assert not source.is_finished
        assert source.next_element() == element
    assert source.is_finished


def test_a_source_with_nothing_now_is_asked_again() -> None:
    reader = Scripted([], [], [StreamRecord(1)], None)
    source = SourceInput("flights", 0, reader, 3)
    assert [read(source) for _ in range(4)] == [[], [], [StreamRecord(1)], [MAX_WATERMARK]]
    assert reader.asked == [3, 3, 3, 3]


def test_a_reader_that_fails_names_the_source_and_the_subtask() -> None:
    source = SourceInput("flights", 2, Scripted(OSError("disk gone")), 3)
    with pytest.raises(UserCodeError, match="flights, subtask 2, raised OSError: disk gone") as caught:
        read(source)
    assert (caught.value.operator, caught.value.subtask, caught.value.record) == ("flights", 2, None)
    assert isinstance(caught.value.__cause__, OSError)


def test_an_error_of_the_engine_in_a_reader_stays_what_it_is() -> None:
    with pytest.raises(LocalUsageError, match="mine"):
        read(SourceInput("flights", 0, Scripted(LocalUsageError("mine")), 3))


def test_closing_closes_the_reader_and_drops_what_was_read() -> None:
    reader = Scripted([StreamRecord(1), StreamRecord(2)])
    source = SourceInput("flights", 0, reader, 3)
    source.take()
    source.next_element()
    source.close()
    assert reader.is_closed
    assert source.next_element() is None


# -- going on where another was --------------------------------------------------------------------


class Seeking(Scripted):
    """A reader that begins where it is told to."""

    sought: int | None = None

    def seek(self, position: int) -> None:
        self.sought = position


LETTERS = [[StreamRecord(letter) for letter in part] for part in ("abc", "", "de", "f")]


def go_on_behind(num_elements: int) -> tuple[int, list[object]]:
    """Where an input is behind `num_elements`, and what another gives from there on."""
    first = SourceInput("letters", 0, Scripted(*LETTERS, None), 64)
    for _ in range(num_elements):
        while first.next_element() is None:
            first.take()
    second = SourceInput("letters", 0, Scripted(*LETTERS, None), 64)
    second.seek(first.position)
    assert second.position == first.position, "it has not read yet"
    rest = list[object]()
    while not second.is_finished:
        rest += read(second)
    assert second.position == 6
    return first.position, rest


@pytest.mark.parametrize("num_elements", range(8))
def test_another_input_goes_on_behind_what_has_been_handed_on(num_elements: int) -> None:
    position, rest = go_on_behind(num_elements)
    assert position == min(num_elements, 6)
    assert rest == [StreamRecord(letter) for letter in "abcdef"[num_elements:]] + [MAX_WATERMARK]


def test_a_reader_that_can_begin_elsewhere_is_told_to() -> None:
    reader = Seeking(LETTERS[2], None)
    source = SourceInput("letters", 0, reader, 64)
    source.seek(3)
    assert (reader.sought, source.position) == (3, 3)
    assert read(source) == LETTERS[2]
    assert source.position == 5


def test_a_source_that_has_become_shorter_is_refused() -> None:
    source = SourceInput("letters", 2, Scripted(*LETTERS[::2], None), 64)
    source.seek(7)
    with pytest.raises(UserCodeError, match=r"letters.*subtask 2.*ends 2 records before the place it had come to"):
        read(source)


def test_a_batch_is_cut_where_the_input_is_to_begin() -> None:
    batch = RecordBatch([memoryview(bytes(range(5)))], None, None, False)
    source = SourceInput("bytes", 0, Scripted(batch, None), 64)  # type: ignore[arg-type]
    source.seek(3)
    assert read(source) == [StreamRecord(3), StreamRecord(4)]
