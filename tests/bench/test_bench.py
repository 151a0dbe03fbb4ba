"""The benchmark measures what it says: shape of its answer, its checks, its refusals. No speed is asserted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from refimpl.errors import LocalUsageError
from refimpl.records import StreamRecord
from tests.bench.command import main
from tests.bench.contenders import BENCHMARKS, KIND, checksum, expected
from tests.bench.exchange import Exchange
from tests.bench.measure import (
    Benchmark,
    Contender,
    Figure,
    Outcome,
    Ratio,
    Turn,
    WrongAnswerError,
    in_two_threads,
    measure,
)

ROOT = Path(__file__).parents[2]
EVERY = [pytest.param(b, c, id=f"{b.name}-{c.name}") for b in BENCHMARKS for c in b.contenders]


@pytest.mark.parametrize(("benchmark", "contender"), EVERY)
@pytest.mark.parametrize("num_records", [1, 4_097, 20_011])
def test_a_contender_delivers_every_record_in_order(
    benchmark: Benchmark, contender: Contender, num_records: int
) -> None:
    num_moved, arrived = contender.deliver(num_records)
    assert num_moved >= num_records
    assert arrived == benchmark.expected(num_moved)


@pytest.mark.parametrize(("benchmark", "contender"), EVERY)
def test_a_turn_is_checked_by_the_sum_of_what_arrived(benchmark: Benchmark, contender: Contender) -> None:
    turn = contender.run(9_001)
    assert turn.checksum == benchmark.checksum(turn.num_records) == checksum(turn.num_records)
    assert turn.wall_s > 0
    assert turn.checksum == sum(value for _time, _key, value in expected(turn.num_records))


@pytest.mark.slow
def test_the_answer_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--rounds", "2", "--records", "300"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["format"] == "sluice-bench/1"
    assert answer["rounds"] == 2
    assert {"processor", "cores", "python", "numpy", "pyarrow", "load_before", "load_after"} <= set(answer["machine"])
    assert [benchmark["name"] for benchmark in answer["benchmarks"]] == [benchmark.name for benchmark in BENCHMARKS]
    for shown, benchmark in zip(answer["benchmarks"], BENCHMARKS, strict=True):
        names = [contender.name for contender in benchmark.contenders]
        assert [contender["name"] for contender in shown["contenders"]] == names
        assert [(ratio["of"], ratio["to"]) for ratio in shown["ratios"]] == [(r.one, r.other) for r in benchmark.ratios]
        for contender in shown["contenders"]:
            assert contender["records_per_turn"] >= 300
            assert_spread(contender["records_per_s"])
            assert_spread(contender["cpu_ns_per_record"], least=0.0)
        for ratio in shown["ratios"]:
            assert_spread(ratio["wall"])
            assert_spread(ratio["cpu"], least=0.0)


def assert_spread(figure: dict[str, float], least: float = 1e-9) -> None:
    assert least <= figure["low"] <= figure["median"] <= figure["high"]


@pytest.mark.slow
def test_the_answer_in_words_names_contenders_ratios_and_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--rounds", "1", "--records", "200"]) == 0
    shown = capsys.readouterr().out
    assert "exchange / queue.Queue: wall " in shown
    assert "goal 3.5, floor 2.5" in shown
    assert "numpy" in shown
    assert "Arrow" not in shown.partition("\n\n")[0]


def test_the_list_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    for benchmark in BENCHMARKS:
        assert f"{benchmark.name}: " in shown
        assert all(contender.meaning in shown for contender in benchmark.contenders)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["recrod"], "there is no benchmark called 'recrod'; did you mean record?"),
        (["zzz"], "there is no benchmark called 'zzz'; there are record, batch"),
        (["--rounds", "0"], "'0' is no whole number from 1 to 1000"),
        (["--rounds", "many"], "'many' is no whole number"),
        (["--records", "-3"], "--records"),
        (["--seconds", "nan"], "'nan' is no number of seconds from 0.001 to 60"),
        (["--seconds", "0.1", "--records", "5"], "give one of them"),
        (["--fast"], "--fast"),
    ],
)
def test_wrong_use_is_refused_with_a_reason(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    output = capsys.readouterr()
    assert complaint in output.err
    assert output.out == ""


# -- the checks can fail ---------------------------------------------------------------------------


def with_contender(of: Callable[[Contender], Contender]) -> Benchmark:
    """The benchmark `record` with only its queue, changed by `of`."""
    record = BENCHMARKS[0]
    return replace(record, contenders=(of(record.contenders[-1]),), ratios=())


def losing(contender: Contender) -> Contender:
    def deliver(num_records: int) -> tuple[int, list[tuple[int, int, int]]]:
        num_moved, rows = contender.deliver(num_records)
        return num_moved, rows[:7] + rows[8:]

    return replace(contender, deliver=deliver)


def changing(contender: Contender) -> Contender:
    def run(num_records: int) -> Turn:
        turn = contender.run(num_records)
        return replace(turn, checksum=turn.checksum + 1)

    return replace(contender, run=run)


def test_a_contender_that_loses_a_record_has_no_speed() -> None:
    with pytest.raises(WrongAnswerError, match="100 records and delivered 99; the first that differs is number 7"):
        measure(with_contender(losing), rounds=1, seconds=0.01, num_records=100)


def test_a_turn_that_comes_to_another_sum_has_no_speed() -> None:
    with pytest.raises(WrongAnswerError, match=r"was given 100 records with the sum -?\d+; the sum of what arrived is"):
        measure(with_contender(changing), rounds=1, seconds=0.01, num_records=100)


def test_a_wrong_answer_ends_the_command_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.bench.command.BENCHMARKS", (with_contender(losing),))
    assert main(["record", "--records", "100"]) == 1
    assert "delivered 99" in capsys.readouterr().err


def test_a_failure_of_the_producer_reaches_the_one_who_asked() -> None:
    engine = Exchange(KIND, 4)
    with pytest.raises(LocalUsageError, match="is not a tuple"):
        in_two_threads(
            lambda: engine.produce_records([[StreamRecord("no tuple", 1)]]), lambda: engine.consume_records(print)
        )


# -- the arithmetic --------------------------------------------------------------------------------


def test_a_ratio_is_the_median_of_the_ratios_of_rounds() -> None:
    """The machine became ten times slower in the second round: each round says two, the medians of each would not."""
    fast = [Turn(100, 1.0, 1.0, 0), Turn(100, 10.0, 10.0, 0), Turn(100, 1.0, 2.0, 0)]
    slow = [Turn(100, 2.0, 1.0, 0), Turn(100, 20.0, 10.0, 0), Turn(50, 1.0, 1.0, 0)]
    outcome = Outcome(BENCHMARKS[0], {"fast": fast, "slow": slow})
    assert outcome.wall_ratio(Ratio("fast", "slow")) == Figure(2.0, 2.0, 2.0)
    assert outcome.cpu_ratio(Ratio("fast", "slow")) == Figure(1.0, 1.0, 1.0)
    assert outcome.wall_ratio(Ratio("slow", "fast")).median == 0.5


def test_the_spread_is_the_middle_half_or_all_of_few_rounds() -> None:
    assert Figure.of([5.0, 1.0, 3.0]) == Figure(3.0, 1.0, 5.0)
    assert Figure.of([1.0, 2.0, 3.0, 4.0, 100.0]) == Figure(3.0, 2.0, 4.0)
    assert Figure.of([7.0]) == Figure(7.0, 7.0, 7.0)


@pytest.mark.slow
def test_contenders_take_turns_and_every_second_round_goes_backwards() -> None:
    said: list[str] = []
    measure(BENCHMARKS[0], rounds=2, seconds=0.01, num_records=10, say=said.append)
    turns = [text.partition(", ")[2] for text in said if "round" in text]
    names = [contender.name for contender in BENCHMARKS[0].contenders]
    assert turns == [*names, *reversed(names)]


# -- Ctrl-C ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_control_c_ends_it_with_130_and_without_a_traceback() -> None:
    command = [sys.executable, "-m", "tests.bench", "--json", "--seconds", "1", "--rounds", "1000"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("record: ")  # the first progress: it is measuring
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "interrupted" in err
