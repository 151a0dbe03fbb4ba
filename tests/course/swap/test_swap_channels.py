"""Both ends of a channel's credit change hands in a running job on two TaskManagers, and back when they fail."""

from __future__ import annotations

import linecache

import pytest

from course import swap
from course.curriculum.specimens import right_answers

pytestmark = pytest.mark.slow

DRIVERS = ["simulation", "threads"]
NAMES = {
    "9.1": "to_frame", "9.2": "Decoder", "9.3": "Sequence", "10.1": "Marks", "10.2": "Waiting", "11.1": "Receiver",
    "11.2": "Sender", "18.1": "Wire", "18.2": "Reader",
}  # fmt: skip


TURNS = [
    ("9.2", "feed"), ("9.2", "next_frame"), ("9.3", "is_next"), ("9.3", "advance"),
    ("10.1", "hand_out"), ("10.1", "written"), ("10.2", "request_buffer"),
    ("11.1", "on_backlog"), ("11.2", "add_credit"), ("11.2", "poll"),
    ("18.1", "add_credit"), ("18.1", "read_response"), ("18.2", "news"),
]  # fmt: skip


def cell(source: str, name: str):
    """What a cell of a notebook leaves behind under this name."""
    file = f"<cell {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, object] = {"__name__": "cell"}
    exec(compile(source, file, "exec"), names)
    return names[name]


def that(exercise: str, method: str, does: str, *, after: bool = False):
    """A right part but for the twentieth call of `method`; `after` fails when all is done."""
    name = NAMES[exercise]
    source = right_answers(exercise)[{"11.1": 2, "11.2": 1}.get(exercise, 0)].source
    wrapped = (
        f"\n\ncalls = []\n\nclass Breaking({name}):\n    def {method}(self, *given):\n        calls.append(1)\n"
        + (f"        result = super().{method}(*given)\n" if after else "")
        + f"        if len(calls) == 20:\n            {does}\n"
        + ("        return result\n" if after else f"        return super().{method}(*given)\n")
    )
    return cell(source + wrapped, "Breaking")


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("exercise", "number"), [(e, n) for e in NAMES for n in range(3)])
def test_a_right_part_loses_nothing(exercise, number, driver):
    part = cell(right_answers(exercise)[number].source, NAMES[exercise])
    report = swap.run(exercise, part, driver=driver, records=200)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert report.num_calls > 5
    assert report.num_before > 0
    assert report.num_after > 0


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("exercise", "method"), TURNS)
def test_a_part_that_raises_is_taken_out_and_what_it_left_half_done_is_put_right(exercise, method, after, driver):
    report = swap.run(exercise, that(exercise, method, "1 / 0", after=after), driver=driver, segment_size=32)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert report.taken_out[1].endswith("> 1 / 0")
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


def test_a_part_that_cannot_take_over_leaves_ours_in_place():
    source = "from refimpl.consumer import BufferManager\nclass Mine(BufferManager):\n    def __init__(self): pass\n"
    report = swap.run("11.1", cell(source, "Mine"), records=200)
    assert report.taken_out[0].startswith("TypeError: ")
    assert (report.num_lost, report.is_equal) == (0, True)


def test_ours_goes_in_with_few_buffers():
    report = swap.run("11.2", pool=12, records=200)
    assert (report.num_lost, report.is_equal, report.is_learners) == (0, True, False)


def test_a_function_that_raises_is_taken_out_and_ours_is_there_again_when_the_run_is_over():
    from refimpl.exchange import frames, to_frame

    source = right_answers("9.1")[1].source + "\n\ncalls = []\n\n\ndef breaking(frame_id, body):\n    calls.append(1)\n"
    source += "    if len(calls) == 10:\n        1 / 0\n    return to_frame(frame_id, body)\n"
    report = swap.run("9.1", cell(source, "breaking"), records=300)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")
    assert frames.to_frame is to_frame
