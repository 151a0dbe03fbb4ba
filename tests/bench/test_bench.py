"""The benchmark measures what it says: shape of its answer, its checks, its refusals. No speed is asserted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refimpl.errors import LocalUsageError
from refimpl.records import StreamRecord
from tests.bench import command, rows
from tests.bench.channels import Channels, Plan
from tests.bench.command import main
from tests.bench.contenders import KIND, Adding, checksum, expected
from tests.bench.exchange import Exchange
from tests.bench.measure import (
    ContenderError,
    Entry,
    Figure,
    Turn,
    WrongAnswerError,
    in_two_threads,
    play,
)
from tests.bench.report import (
    BEGIN,
    END,
    as_table,
    is_complete,
    line_of,
    machine,
    results_block,
    rewritten,
    row_of,
)
from tests.bench.rows import ENTRIES, ROWS, Comparison, Demand, lacking

ROOT = Path(__file__).parents[2]
LOCAL = {key: entry for key, entry in ENTRIES.items() if key.startswith(("record/", "batch/"))}
NUM_GOALS = 40
SECONDS_TO_END = 120.0


# -- the contenders --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", LOCAL)
@pytest.mark.parametrize("num_records", [1, 4_097, 20_011])
def test_a_contender_delivers_every_record_in_order(key: str, num_records: int) -> None:
    num_moved, arrived = LOCAL[key].contender.deliver(num_records)
    assert num_moved >= num_records
    given = LOCAL[key].expected(num_moved)
    if not LOCAL[key].contender.is_ordered:  # several channels: there is an order within each only
        arrived, given = sorted(arrived), sorted(given)
    assert arrived == given


@pytest.mark.parametrize("key", LOCAL)
def test_a_turn_is_checked_by_the_sum_of_what_arrived(key: str) -> None:
    turn = LOCAL[key].contender.run(9_001)
    assert turn.checksum == LOCAL[key].checksum(turn.num_records) == checksum(turn.num_records)
    assert turn.wall_s > 0
    assert turn.checksum == sum(value for _time, _key, value in expected(turn.num_records))


def test_a_failure_of_the_producer_reaches_the_one_who_asked() -> None:
    engine = Exchange(KIND, 4)
    with pytest.raises(LocalUsageError, match="is not a tuple"):
        in_two_threads(
            lambda: engine.produce_records([[StreamRecord("no tuple", 1)]]), lambda: engine.consume_records(print)
        )


def test_the_clock_does_not_go_on_until_the_next_flush() -> None:
    """The flusher is woken when all is written; it would else sleep on, here for an hour."""
    operator, channels = Adding(), Channels(Plan(3, timeout_ms=3_600_000))
    turn = threading.Thread(target=channels.move, args=(5_000, operator.record), daemon=True)
    turn.start()
    turn.join(SECONDS_TO_END)
    assert not turn.is_alive()
    assert operator.total == checksum(5_000)


# -- the rows --------------------------------------------------------------------------------------


def test_all_goals_have_a_row_and_no_two_rows_share_a_name() -> None:
    assert [row.number for row in ROWS if row.number] == list(range(1, NUM_GOALS + 1))
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert not any(row.name.isdecimal() for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace("/", "-"))
def test_a_row_asks_for_a_goal_no_easier_than_its_floor(row: rows.Row) -> None:
    for comparison in row.comparisons:
        assert (comparison.goal is None) == (row.number == 0)
        if comparison.goal is not None and comparison.floor is not None:
            sign = -1 if comparison.is_less_better else 1
            assert sign * comparison.goal >= sign * comparison.floor
        assert comparison.other is not None or comparison.found is not None


def test_a_contender_that_is_not_there_says_so() -> None:
    assert lacking("batch/nobody") == "there is no contender 'batch/nobody' yet"
    assert lacking("record/queue.Queue") is None


@pytest.mark.slow
@pytest.mark.sampled(one_in=7)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace("/", "-"))
def test_a_row_is_measured_or_says_why_not(row: rows.Row) -> None:
    run = command.Run(rounds=1, length_s=0.01, num_records=100)
    run.measure([row])
    (shown,) = run.answer([row])["rows"]
    assert len(shown["lines"]) == len(row.comparisons)
    for comparison, line in zip(row.comparisons, shown["lines"], strict=True):
        reasons = [reason for key in (comparison.one, comparison.other) if key and (reason := lacking(key))]
        if reasons:
            assert line["verdict"] == f"not measured: {reasons[0]}"
            assert line["value"] is None
        else:
            assert line["value"]["median"] > 0 or "no credits" in comparison.one  # they may come to a halt
            assert not line["verdict"].startswith("not measured")


# -- the command -----------------------------------------------------------------------------------


def answer_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json", "-"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.slow
def test_the_answer_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_of(capsys, "1", "batch/arrow", "--only", "7,26", "--rounds", "2", "--records", "300")
    assert answer["format"] == "sluice-bench/2"
    assert answer["rounds"] == 2
    assert {"processor", "cores", "load_before", "load_after", "system"} <= set(answer["machine"])
    assert {"numpy", "pyarrow", "sluice"} <= set(answer["machine"]["versions"])
    assert [(row["number"], row["name"]) for row in answer["rows"]] == [
        (1, "emit/queue"),
        (7, "batch/copy"),
        (8, "batch/arrow"),
        (26, "channels/active"),
    ]
    for row in answer["rows"]:
        for line in row["lines"]:
            assert line["verdict"] in {"goal", "floor", "missed", "goal by CPU", "floor by CPU"}
            assert_spread(line["value"])
            assert_spread(line["cpu"], least=0.0)
    assert set(answer["turns"]) == {"record", "batch", "channels"}
    for turns in answer["turns"]["record"].values():
        assert [turn["num_records"] for turn in turns] == [300, 300]
        assert {"wall_s", "cpu_s", "checksum", "found"} < set(turns[0])


def assert_spread(figure: dict[str, float], least: float = 1e-9) -> None:
    assert least <= figure["low"] <= figure["median"] <= figure["high"]


@pytest.mark.slow
def test_the_table_names_rows_and_the_machine_and_says_where_all_of_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    assert main(["1", "--rounds", "1", "--records", "200", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "≥ 3.5" in shown
    assert "queue.Queue per record" in shown
    assert "numpy" in shown
    assert str(file) in shown
    assert "Arrow IPC" not in shown
    assert json.loads(file.read_text())["rows"][0]["number"] == 1


@pytest.mark.slow
def test_without_a_file_a_part_does_not_take_the_place_of_a_whole_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path / "bench")
    assert main(["7", "--rounds", "1", "--records", "200"]) == 0
    assert [path.name for path in (tmp_path / "bench").iterdir()] == ["part.json"]


def test_the_list_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    for row in ROWS:
        assert row.name in shown
        for comparison in row.comparisons:
            assert comparison.one in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["emit/queu"], "there is no row 'emit/queu'; did you mean emit/queue?"),
        (["--only", "3,99"], "there is no row '99'"),
        (["zzz"], f"there is no row 'zzz'; there are 1 to {NUM_GOALS} and emit/queue"),
        (["--rounds", "0"], "'0' is no whole number from 1 to 1000"),
        (["--rounds", "many"], "'many' is no whole number"),
        (["--records", "-3"], "--records"),
        (["--seconds", "nan"], "'nan' is no number of seconds from 0.001 to 60"),
        (["--seconds", "0.1", "--records", "5"], "give one of them"),
        (["--fast"], "--fast"),
        (["--results", "--json", "/nowhere/run.json"], "there is no /nowhere/run.json"),
    ],
)
def test_wrong_use_is_refused_with_a_reason(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    output = capsys.readouterr()
    assert complaint in " ".join(output.err.split())
    assert output.out == ""


# -- the checks can fail ---------------------------------------------------------------------------


def queue_with(of: Callable[[Entry], Entry], monkeypatch: pytest.MonkeyPatch, key: str = "record/queue.Queue") -> Entry:
    """Put a changed contender into the place of the one under `key`."""
    changed = of(ENTRIES[key])
    monkeypatch.setitem(ENTRIES, key, changed)
    return changed


def losing(entry: Entry) -> Entry:
    def deliver(num_records: int) -> tuple[int, list[tuple[int, int, int]]]:
        num_moved, arrived = entry.contender.deliver(num_records)
        return num_moved, arrived[:7] + arrived[8:]

    return replace(entry, contender=replace(entry.contender, deliver=deliver))


def changing(entry: Entry) -> Entry:
    def run(num_records: int) -> Turn:
        turn = entry.contender.run(num_records)
        return replace(turn, checksum=turn.checksum + 1)

    return replace(entry, contender=replace(entry.contender, run=run))


def failing(entry: Entry) -> Entry:
    def run(_num_records: int) -> Turn:
        raise OSError("gone")

    return replace(entry, contender=replace(entry.contender, run=run))


def test_a_contender_that_loses_a_record_has_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = queue_with(losing, monkeypatch)
    with pytest.raises(WrongAnswerError, match="100 records and delivered 99; the first that differs is number 7"):
        play([entry], rounds=1, seconds=0.01, num_records=100)


def test_one_that_may_change_the_order_must_deliver_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = queue_with(losing, monkeypatch)
    unordered = replace(entry, contender=replace(entry.contender, is_ordered=False))
    with pytest.raises(WrongAnswerError, match="delivered 99"):
        play([unordered], rounds=1, seconds=0.01, num_records=100)


def test_a_turn_that_comes_to_another_sum_has_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = queue_with(changing, monkeypatch)
    with pytest.raises(WrongAnswerError, match=r"was given 100 records with the sum -?\d+; the sum of what arrived is"):
        play([entry], rounds=1, seconds=0.01, num_records=100)


def test_a_wrong_answer_ends_the_command_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queue_with(losing, monkeypatch)
    assert main(["1", "--records", "100"]) == 1
    assert "delivered 99" in capsys.readouterr().err


def test_an_error_of_ours_is_not_taken_for_a_missing_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="gone"):
        play([failing(ENTRIES["record/exchange"])], rounds=1, seconds=0.01, num_records=10)
    with pytest.raises(ContenderError, match="OSError: gone"):
        play([replace(failing(ENTRIES["record/exchange"]), key="peers/emit")], rounds=1, seconds=0.01, num_records=10)


@pytest.mark.slow
def test_a_peer_that_fails_leaves_its_row_in_the_table_and_the_others_their_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = replace(failing(ENTRIES["record/queue.Queue"]), key="peers/pyzmq")
    monkeypatch.setitem(ENTRIES, "peers/pyzmq", broken)
    one = row_with("against the broken", Comparison("emit", "broken", "record/exchange", "peers/pyzmq", 1, 1))
    two = row_with("against codec", Comparison("emit", "codec", "record/exchange", "record/job", 1, 1))
    run = command.Run(1, 0.01, 100)
    run.measure([one, two])
    first, second = (row["lines"][0] for row in run.answer([one, two])["rows"])
    assert first["verdict"] == "not measured: OSError: gone"
    assert first["value"] is None
    assert second["value"]["median"] > 0


def row_with(name: str, *comparisons: Comparison) -> rows.Row:
    return rows.Row(1, name, "record", comparisons)


# -- the arithmetic --------------------------------------------------------------------------------


def turns(*figures: tuple[int, float, float], **found: float) -> list[Turn]:
    return [Turn(n, wall, cpu, 0, found) for n, wall, cpu in figures]


RATIO = Comparison("fast", "slow", "fast", "slow", 1.5, 1.0)


def judged(of: Comparison, is_busy: bool = False, **played: Sequence[Turn]) -> dict[str, Any]:
    return line_of(of, played, is_busy=is_busy)


def test_a_ratio_is_the_median_of_the_ratios_of_rounds() -> None:
    """The machine became ten times slower in the second round: each round says two, the medians of each would not."""
    line = judged(
        RATIO,
        fast=turns((100, 1.0, 1.0), (100, 10.0, 10.0), (100, 1.0, 2.0)),
        slow=turns((100, 2.0, 1.0), (100, 20.0, 10.0), (50, 1.0, 1.0)),
    )
    assert line["value"] == {"median": 2.0, "low": 2.0, "high": 2.0}
    assert line["cpu"] == {"median": 1.0, "low": 1.0, "high": 1.0}
    assert line["verdict"] == "goal"


@pytest.mark.parametrize(
    ("wall", "cpu", "is_busy", "verdict"),
    [
        (1.0, 9.0, False, "goal"),
        (1.5, 1.0, False, "floor"),
        (1.5, 1.0, True, "goal by CPU"),
        (3.0, 1.5, True, "floor by CPU"),
        (3.0, 1.0, False, "missed"),
        (1.5, 9.0, True, "floor"),
    ],
)
def test_the_clock_decides_and_on_a_busy_machine_the_cpu_may(
    wall: float, cpu: float, is_busy: bool, verdict: str
) -> None:
    line = judged(RATIO, is_busy, fast=turns((100, wall, cpu)), slow=turns((100, 2.0, 2.0)))
    assert line["verdict"] == verdict


def test_a_goal_for_the_work_is_judged_by_the_cpu_alone() -> None:
    line = judged(replace(RATIO, by_cpu=True), fast=turns((100, 1.0, 9.0)), slow=turns((100, 9.0, 1.0)))
    assert line["verdict"] == "missed"


def test_records_that_weigh_more_count_more() -> None:
    line = judged(replace(RATIO, weight=1.5), fast=turns((100, 1.0, 1.0)), slow=turns((100, 1.0, 1.0)))
    assert line["value"]["median"] == line["cpu"]["median"] == 1.5


@pytest.mark.parametrize(("p50", "verdict"), [(1.0, "goal"), (1.9, "floor"), (2.1, "missed")])
def test_what_was_found_is_judged_with_less_better(p50: float, verdict: str) -> None:
    latency = Comparison("p50", "T", "fast", None, 1, 2, found="p50_ms", is_less_better=True)
    line = judged(latency, fast=turns((1, 1.0, 1.0), p50_ms=p50))
    assert (line["verdict"], line["value"]["median"], line["cpu"]) == (verdict, p50, None)


def test_a_ratio_of_what_was_found_takes_both_of_a_round() -> None:
    latency = replace(RATIO, found="p50_ms")
    line = judged(latency, fast=turns((1, 1.0, 1.0), p50_ms=3.0), slow=turns((1, 1.0, 1.0), p50_ms=2.0))
    assert line["value"]["median"] == 1.5


@pytest.mark.parametrize(("rate", "verdict"), [(500.0, "goal"), (499.0, "missed")])
def test_a_ratio_that_a_flusher_bought_by_not_running_is_missed(rate: float, verdict: str) -> None:
    demanding = replace(RATIO, demands=[Demand("flushes_per_s", least=500)])
    line = judged(demanding, fast=turns((2, 1.0, 1.0), flushes_per_s=rate), slow=turns((1, 1.0, 1.0)))
    assert line["verdict"] == verdict
    assert bool(line["notes"]) == (verdict == "missed")


def test_the_spread_is_the_middle_half_or_all_of_few_rounds() -> None:
    assert Figure.of([5.0, 1.0, 3.0]) == Figure(3.0, 1.0, 5.0)
    assert Figure.of([1.0, 2.0, 3.0, 4.0, 100.0]) == Figure(3.0, 2.0, 4.0)
    assert Figure.of([7.0]) == Figure(7.0, 7.0, 7.0)


@pytest.mark.slow
def test_contenders_take_turns_and_every_second_round_goes_backwards() -> None:
    said: list[str] = []
    keys = ["record/exchange", "record/job", "record/queue.Queue"]
    play([ENTRIES[key] for key in keys], rounds=2, seconds=0.01, num_records=10, say=said.append)
    assert [text.partition(", ")[2] for text in said if "round" in text] == [*keys, *reversed(keys)]


@pytest.mark.slow
def test_a_turn_is_as_long_as_asked_for_and_has_at_least_the_records_it_needs() -> None:
    entry = ENTRIES["record/queue.Queue"]
    (free,) = play([entry], rounds=1, seconds=0.001)[entry.key]
    needy = replace(entry, contender=replace(entry.contender, least_records=free.num_records + 12_345))
    (turn,) = play([needy], rounds=1, seconds=0.000_001)[entry.key]
    assert turn.num_records == free.num_records + 12_345


@pytest.mark.slow
def test_what_misses_its_goal_takes_its_turns_once_more_and_all_of_them_count() -> None:
    unreachable = row_with("unreachable", Comparison("emit", "codec", "record/exchange", "record/job", 1e9, 1e8))
    easy = row_with("easy", Comparison("emit", "codec", "record/exchange", "record/job", 1e-9, 1e-9))
    for row, num_turns in ((unreachable, 6), (easy, 3)):
        run = command.Run(3, 0.001, None)
        run.measure([row])
        assert len(run.answer([row])["turns"]["record"]["record/exchange"]) == num_turns


# -- the table in RESULTS.md -----------------------------------------------------------------------


def an_answer() -> dict[str, Any]:
    said = [
        row_of(row, [line_of(each, {}, is_busy=False, missing="a | b") for each in row.comparisons]) for row in ROWS
    ]
    return {"rows": said, "rounds": 7, "seconds": 0.5, "machine": machine(0.0)}


def test_the_block_has_a_line_for_each_comparison_and_names_all_goals() -> None:
    answer = an_answer()
    block = results_block(answer)
    table = [line for line in block.splitlines() if line.startswith("|")]
    assert len(table) == 2 + sum(len(row.comparisons) for row in ROWS)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {9}
    assert "not measured: a \\| b" in block
    assert is_complete(answer["rows"])
    assert not is_complete(answer["rows"][1:])
    assert as_table(answer["rows"]).count("\n") == len(table) - 2


def test_the_block_goes_into_the_place_of_the_one_before() -> None:
    block = results_block(an_answer())
    once = rewritten(f"before\n{BEGIN}\nold\n{END}\nafter\n", block)
    assert once == f"before\n{block}\nafter\n"
    assert rewritten(once, block) == once
    for text in ("", f"{END} {BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"):
        with pytest.raises(ValueError, match="both marks once"):
            rewritten(text, block)


def test_the_page_has_a_place_for_the_table_and_in_it_all_goals_or_none() -> None:
    text = (ROOT / "tests" / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    block = text[text.index(BEGIN) : text.index(END)]
    numbers = re.findall(r"^\| (\d+) \|", block, flags=re.MULTILINE)
    assert numbers in ([], [str(number) for number in range(1, NUM_GOALS + 1)])
    assert numbers or "make bench" in block


@pytest.mark.slow
def test_a_part_of_a_run_does_not_get_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    monkeypatch.setattr(command, "RESULTS", page)
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    answer = {**an_answer(), "format": "sluice-bench/2"}
    whole.write_text(json.dumps(answer))
    part.write_text(json.dumps({**answer, "rows": answer["rows"][:3]}))
    with pytest.raises(SystemExit):
        main(["--results", "--json", str(part)])
    assert "no complete run" in capsys.readouterr().err
    assert main(["--results", "--json", str(whole)]) == 0
    assert "| 28 |" in page.read_text()


# -- Ctrl-C ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("row", ["1", "25"])
def test_control_c_ends_it_with_130_and_without_a_traceback(row: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench", row, "--seconds", "1", "--rounds", "1000"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    with process:
        assert process.stderr is not None
        assert "checking" in process.stderr.readline()  # the first progress: it is measuring
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    # Python ends itself by the signal, which a shell calls 130 too, when Ctrl-C comes within an `exec` of a text, as in
    # the dataclasses of a module that is being imported: CPython 3.11, `run_eval_code_obj` in pythonrun.c.
    assert process.returncode in {130, -signal.SIGINT}
    assert out == ""
    assert "Traceback" not in err
    assert "interrupted" in err


def test_who_stops_reading_is_no_trouble() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench", "--list"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()  # as `head` does, here before anything is printed
    _, complaints = process.communicate(timeout=60)
    assert (process.returncode, complaints) == (0, b"")
