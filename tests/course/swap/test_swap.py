"""A part goes into the running job and comes out again when it fails; no record is lost either way."""

from __future__ import annotations

import linecache

import pytest

from course import swap
from course.curriculum.parts import to_departure
from course.curriculum.specimens import right_answers
from refimpl.job import build_chains, is_chainable
from refimpl.producer import PipelinedSubpartition
from refimpl.records import SerializationResult, SpanningRecordSerializer
from refimpl.task import CopyingChainingOutput

DRIVERS = ["simulation", "threads"]
RIGHT = {
    "0.1": to_departure, "3.1": SpanningRecordSerializer, "6.1": is_chainable, "6.2": build_chains,
    "6.3": CopyingChainingOutput, "7.1": PipelinedSubpartition,
}  # fmt: skip


def cell(source: str, name: str):
    """What a cell of a notebook leaves behind under this name."""
    file = f"<cell {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, object] = {"__name__": "cell"}
    exec(compile(source, file, "exec"), names)
    return names[name]


def map_that(does: str):
    return cell(
        "calls = []\ndef mine(flight):\n    calls.append(1)\n    if len(calls) == 100:\n"
        f"        {does}\n    return flight['origin'], max(0, flight['dep_delay_minutes'])\n",
        "mine",
    )


def serializer_that(does: str, *, after_append: bool = False):
    """A right serializer but for its fortieth copy; `after_append` fails with bytes written and not committed."""
    append = "            builder.append(self.data[:3])\n" if after_append else ""
    check = f"        calls.append(1)\n        if len(calls) == 40:\n{append}            {does}\n"
    source = right_answers("3.1")[0].source.replace("class Serializer", "calls = []\n\n\nclass Serializer")
    line = "        self.position += builder.append_and_commit(self.data, self.position)\n"
    before, _, after = source.partition(line)
    return cell(before + check + line + after, "Serializer")


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("exercise", RIGHT)
def test_a_right_part_loses_nothing(exercise, driver):
    report = swap.run(exercise, RIGHT[exercise], driver=driver, records=300)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert report.num_before > 0
    assert report.num_after > 0
    assert "✓ none lost" in repr(report)


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("does", "why"), [("raise ValueError('too many')", "ValueError: too many"), ("raise SystemExit", "SystemExit: ")]
)
def test_a_map_that_raises_is_taken_out_and_its_line_is_shown(does, why, driver):
    report = swap.run("0.1", map_that(does), driver=driver)
    assert report.taken_out[0] == why
    assert report.taken_out[1].startswith("line 5 > raise ")
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("after_append", [False, True])
def test_a_serializer_that_raises_in_the_middle_of_a_record_is_taken_out(driver, after_append):
    report = swap.run("3.1", serializer_that("1 / 0", after_append=after_append), driver=driver, segment_size=16)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert report.taken_out[1].endswith("> 1 / 0")
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")
    assert "ours went on where it stopped" in repr(report)


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_part_that_stalls_is_taken_out(driver, monkeypatch):
    monkeypatch.setattr(swap.Guard.__init__, "__defaults__", (0.2,))
    report = swap.run("3.1", serializer_that("\n            while True: pass"), driver=driver)
    assert report.taken_out[0] == "it did not come back within 0.2 seconds"
    assert "while True: pass" in report.taken_out[1]
    assert (report.num_lost, report.is_equal) == (0, True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [("None", "it answered None"), ("R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL", "it answered PARTIAL without a byte")],
)
def test_a_serializer_that_writes_nothing_is_taken_out(answer, said):
    source = "from refimpl.records import SerializationResult as R\n" + right_answers("3.1")[0].source.replace(
        "        self.position += builder", f"        return {answer}\n        self.position += builder"
    )
    report = swap.run("3.1", cell(source, "Serializer"), records=100)
    assert report.taken_out[0].startswith(said)
    assert (report.num_lost, report.is_equal) == (0, True)


def test_a_part_that_cannot_be_made_is_taken_out():
    report = swap.run("3.1", cell("class Mine:\n    def __init__(self, size): pass\n", "Mine"), records=100)
    assert "missing 1 required positional argument" in report.taken_out[0]
    assert report.is_equal


def test_a_wrong_answer_is_seen_in_the_job():
    report = swap.run("0.1", lambda flight: (flight["dest"], 0), records=100)
    assert not report.is_equal
    assert "NOT what ours alone gives" in repr(report)


def test_there_are_two_drivers():
    with pytest.raises(ValueError, match="no driver 'trains' here; there are simulation and threads"):
        swap.run("0.1", driver="trains")
    assert SerializationResult.FULL_RECORD.is_full_record


# -- lesson 6: the graph, and the way down a chain -------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("exercise", ["6.1", "6.2"])
def test_a_graph_that_cannot_be_made_is_made_by_ours(exercise, driver):
    bad = cell("def bad(*given):\n    return 1 / 0\n", "bad")
    report = swap.run(exercise, bad, driver=driver, records=100)
    assert report.taken_out == ("ZeroDivisionError: division by zero", "line 2 > return 1 / 0")
    assert (report.num_lost, report.is_equal, report.num_calls) == (0, True, 1)
    assert "✓ none lost" in repr(report)


def test_a_graph_of_too_few_tasks_counts_an_hour_twice():
    report = swap.run("6.1", lambda graph, edge, config: True, records=300)
    assert (report.num_lost, report.is_equal, report.num_edges) == (0, False, 0)
    assert "NOT what ours alone gives" in repr(report)


def test_a_graph_that_no_job_can_have_is_said():
    report = swap.run("6.2", lambda graph, can_chain: {}, records=100)
    assert "✗ the job did not run: KeyError" in repr(report)


def output_that(does: str):
    source = right_answers("6.3")[0].source.replace("class CopyingOutput", "calls = []\n\n\nclass CopyingOutput")
    line = "        return StreamRecord("
    bad = f"        calls.append(1)\n        if len(calls) == 50: {does}\n"
    return cell(source.replace(line, bad + line), "CopyingOutput")


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
def test_an_output_that_raises_is_taken_out_and_its_record_goes_on(driver):
    report = swap.run("6.3", output_that("1 / 0"), driver=driver)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


# -- lesson 7: the queue ---------------------------------------------------------------------------


def rules_that(does: str, after: str = "piece = head.build()"):
    """Right rules but for their twentieth poll; `after` is the line it fails behind."""
    source = right_answers("7.1")[0].source.replace("class Subpartition", "calls = []\n\n\nclass Subpartition")
    line = f"            {after}\n"
    before, _, rest = source.partition(line)
    bad = f"            calls.append(1)\n            if len(calls) == 20:\n                {does}\n"
    return cell(before + line + bad + rest, "Subpartition")


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("after", ["head = self.queue[0]", "piece = head.build()"])
def test_rules_that_raise_are_taken_out_and_the_queue_is_as_it_was(driver, after):
    report = swap.run("7.1", rules_that("1 / 0", after), driver=driver)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert report.taken_out[1].endswith("> 1 / 0")
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


def test_rules_that_answer_nonsense_are_taken_out():
    report = swap.run("7.1", rules_that("return piece"))
    assert report.taken_out[0].startswith("poll answered BufferSlice(")
    assert (report.num_lost, report.is_equal) == (0, True)
