"""Copies, bytes, answers and differences of the ribbon."""

from __future__ import annotations

import pytest

from refimpl.errors import LocalUsageError
from widgets import TwoBufferRibbon, copies_of, ribbon, ribbon_model, serializer_steps
from widgets.ribbon import _frame
from widgets.ribbon_model import read_stream

HELLO_1, HELLO_2 = "0000000568656c6c", "6f"
PARTIAL, EDGE, FULL = "PARTIAL_RECORD_MEMORY_SEGMENT_FULL", "FULL_RECORD_MEMORY_SEGMENT_FULL", "FULL_RECORD"


def step(buffer, bytes_hex, result):
    return {"buffer": buffer, "bytes_hex": bytes_hex, "result": result}


def test_the_engine_cuts_hello_over_two_buffers():
    assert serializer_steps([b"hello"], 8) == [step(0, "0000000568656c6c", PARTIAL), step(1, "6f", FULL)]


def test_an_exact_fit_closes_the_buffer():
    steps = serializer_steps([b"hello", b""], 9)
    assert steps == [step(0, "0000000568656c6c6f", EDGE), step(1, "00000000", FULL)]


def test_a_serializer_that_never_ends_is_stopped():
    class Stuck:
        def serialize_record(self, record): ...

        def copy_to_buffer_builder(self, builder):
            from refimpl.records import SerializationResult

            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL

        def reset(self): ...

        def prune(self): ...

    assert len(serializer_steps([b"x"], 8, Stuck)) == 400


@pytest.mark.parametrize("size", [1, 2, 3, 8, 64])
def test_bytes_are_named_as_a_receiver_reads_them(size):
    records = [b"hello", b"", b"hi" * 20]
    cells = ribbon_model(records, size)["lanes"][0]["cells"]
    for number, record in enumerate(records):
        mine = [cell for cell in cells if cell["record"] == number]
        assert [cell["part"] for cell in mine] == ["length"] * 4 + ["payload"] * len(record)
        assert bytes.fromhex("".join(cell["hex"] for cell in mine[4:])) == record


def test_a_negative_length_loses_the_rest():
    assert [part for part, *_ in read_stream(b"\xff\0\0\0abc")] == ["lost"] * 7


def test_the_queue_beside_is_the_engines_own():
    steps = ribbon_model([b"hello", b"hi", b"x" * 9], 8)["lanes"][0]["steps"]
    assert [len(s["queue"]) for s in steps] == [1, 2, 2, 2, 3, 4]
    assert [s["backlog_buffers"] for s in steps] == [0, 1, 1, 1, 2, 3]
    assert [entry["is_finished"] for entry in steps[-1]["queue"]] == [True, True, True, False]


@pytest.mark.parametrize(
    ("yours", "sentence", "position"),
    [
        (
            [step(0, HELLO_1, PARTIAL), step(1, "000000056f", FULL)],
            "copy 2, buffer 1, byte 0: yours has 00, Flink has 6f", 0,
        ),
        (
            [step(0, HELLO_1, FULL), step(1, HELLO_2, FULL)],
            f"copy 1 has the same bytes, but says {FULL}, not {PARTIAL}", None,
        ),
        ([step(0, HELLO_1, PARTIAL)], "Flink copies once more; yours has stopped", None),
        ([], "Flink copies once more; yours has stopped", None),
        (
            [step(0, HELLO_1, PARTIAL), step(2, HELLO_2, FULL)],
            "copy 2 is in buffer 2, Flink's in buffer 1", None,
        ),
        (
            [step(0, "0000000568", PARTIAL), step(1, HELLO_2, FULL)],
            "copy 1, buffer 0, byte 5: yours has nothing, Flink has 65", 5,
        ),
        ([step(0, "", "raised IndexError: x")], "copy 1, buffer 0, byte 0: yours has nothing, Flink has 00", 0),
    ],
)  # fmt: skip
def test_the_first_difference_is_found_and_said(yours, sentence, position):
    view = ribbon(["68656c6c6f"], 8, yours_steps=yours)
    found = view.model()["difference"]
    assert found["sentence"] == sentence
    assert found["position"] == position
    assert f"first difference: {sentence}" in repr(view)
    assert sentence in view.svg().replace("&#x27;", "'")
    view.close()


def test_equal_lanes_have_no_difference():
    steps = serializer_steps([b"hello", b"hi"], 8)
    view = ribbon(["68656c6c6f", "6869"], 8, yours_steps=steps, flink_steps=steps)
    assert view.model()["difference"] is None
    assert repr(view).endswith("no difference")


def test_each_frame_tells_one_more_copy():
    model = ribbon_model([b"hello", b"hi"], 8)
    told = [_frame(model, at)["status"] for at in range(4)]
    assert told[0] == "nothing copied yet"
    assert told[2] == "SpanningRecordSerializer: copy 2: 1 B into buffer 1 → ● FULL_RECORD; 2 queued, backlog 1"
    assert len(set(told)) == 4


def test_bytes_beyond_the_buffer_are_not_shown():
    model = ribbon([""], 8, yours_steps=[step(0, "00" * 12, FULL)]).model()
    assert model["lanes"][0]["steps"][0]["num_bytes"] == 8
    assert len(model["lanes"][0]["cells"]) == 8


def test_nothing_is_shown_that_went_back_into_a_closed_buffer():
    steps = [step(0, "00", PARTIAL), step(1, "00", PARTIAL), step(0, "0000", FULL)]
    assert [s["num_bytes"] for s in ribbon([""], 8, yours_steps=steps).model()["lanes"][0]["steps"]] == [1, 1, 0]


@pytest.mark.parametrize("bad", [{}, step(-1, "", ""), step(0, "0", ""), step(0, None, ""), step("x", "", "")])
def test_a_step_that_cannot_be_read_is_refused(bad):
    with pytest.raises(LocalUsageError, match="is not a step"):
        ribbon(["00"], 8, yours_steps=[bad])


def test_a_buffer_of_no_bytes_is_refused():
    with pytest.raises(LocalUsageError, match="at least one byte"):
        TwoBufferRibbon([b"x"], segment_size=0)


def test_one_copy_is_no_copies() -> None:
    assert "SpanningRecordSerializer: 1 copy into 1 buffer\n" in repr(TwoBufferRibbon([b"to"], segment_size=8))
    assert "SpanningRecordSerializer: 2 copies into 2 buffers\n" in repr(TwoBufferRibbon([b"hello"], segment_size=8))


@pytest.mark.parametrize(
    ("records", "given", "message"),
    [
        (5, {}, "records=5 cannot work: several of bytes"),
        (b"abc", {}, "records=b'abc' cannot work: several"),
        ("x", {}, "records='x' cannot work: several"),
        ([5], {}, "record 0 is 5, and not bytes"),
        ([b"a", "b"], {}, "record 1 is 'b', and not bytes"),
        ([b"a"], {"segment_size": "x"}, "segment_size='x' cannot work: a buffer has at least one byte"),
        ([b"a"], {"segment_size": 1.5}, "segment_size=1.5 cannot work"),
        ([b"a"], {"serializer_factory": None}, "None makes no serializer"),
        ([b"a"], {"title": 5}, "title=5 cannot work: a string"),
    ],
)
def test_what_cannot_be_cut_is_refused(records, given, message):
    with pytest.raises(LocalUsageError, match=message):
        TwoBufferRibbon(records, **given)


def test_buffers_without_a_byte_are_refused_before_the_first_copy():
    with pytest.raises(LocalUsageError, match="segment_size=0 cannot work"):
        copies_of([b"a"], 0)


@pytest.mark.parametrize("records", [5, None, ["zz"], [b"61"]])
def test_records_that_are_no_hex_are_refused(records):
    with pytest.raises(LocalUsageError, match=r"^records_hex=.* cannot work, each is bytes in hex"):
        ribbon(records, 8)


def test_steps_that_are_no_list_are_refused():
    with pytest.raises(LocalUsageError, match="yours: 5 are no steps"):
        ribbon(["61"], 8, 5)
