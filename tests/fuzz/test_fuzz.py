"""Thousands of hostile inputs for both ends of a connection, and what must be true of the fuzz itself."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from course.compiled.choice import ENGINES
from refimpl.config import FlinkVersion
from refimpl.exchange import ConnectionState
from tests.fuzz.command import main
from tests.fuzz.harness import fault_in, shrink
from tests.fuzz.inputs import CONSUMER, PRODUCER, Input
from tests.fuzz.sessions import numbered_input
from tests.fuzz.world import World, play
from tests.support.compiled import is_compiled

ROOT = Path(__file__).resolve().parents[2]
NUM_BATCHES, BATCH = 20, 1_000


@pytest.mark.slow
@pytest.mark.sampled(one_in=4)
@pytest.mark.parametrize("seed", [f"test-{number}" for number in range(NUM_BATCHES)])
def test_whatever_comes_nothing_breaks(seed: str) -> None:
    for number in range(BATCH):
        fault = fault_in(numbered_input(seed, number), is_weighed=number % 64 == 0)
        assert fault is None, f"{fault.story}\nto see it again: python -m tests.fuzz --replay {seed}:{number}"


# -- the inputs ------------------------------------------------------------------------------------


def after_all_steps(given: Input) -> World:
    world = World(given)
    for step in given.steps:
        world.do(step)
    return world


@pytest.mark.slow
def test_inputs_come_to_every_end_and_go_far() -> None:
    """A generator whose frames are all refused at once would find nothing, and pass."""
    ends: Counter[object] = Counter()
    for number in range(1_000):
        given = numbered_input("ends", number)
        world = after_all_steps(given)
        if world.consumer is not None:
            ends[given.world, world.consumer.connection.state] += 1
            ends["bytes read"] += sum(map(len, world.consumer.read))
            ends.update(type(channel.error).__name__ for channel in world.consumer.channels)
        if world.producer is not None:
            shot = world.producer.connection.snapshot()
            ends[given.world, "is closed", shot.is_closed] += 1
            ends["readers"] += len(shot.readers)
            ends["numbers sent"] += sum(reader.last_sequence_number + 1 for reader in shot.readers.values())
    print(ends)
    for state in ConnectionState:
        assert ends[CONSUMER, state] > 10
    for kind in ("NoneType", "RemoteProtocolError", "RemoteTransportError", "PartitionNotFoundError"):
        assert ends[kind] > 10
    for is_closed in (False, True):
        assert ends[PRODUCER, "is closed", is_closed] > 50
    assert ends["bytes read"] > 2_000
    assert ends["readers"] > 400
    assert ends["numbers sent"] > 250


def test_the_same_number_is_the_same_input_and_a_file_keeps_it() -> None:
    for number in range(50):
        given = numbered_input("same", number)
        assert numbered_input("same", number) == given
        assert Input.from_json(given.to_json()) == given


@pytest.mark.parametrize("text", ["", "{}", '{"format": "sluice-fuzz/2", "steps": []}'])
def test_a_file_that_is_no_input_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Input.from_json(text)


def test_an_input_is_made_short_but_keeps_its_fault() -> None:
    given = numbered_input("short", 1)
    first = given.steps[len(given.steps) // 2]
    shorter = shrink(given, lambda other: first in other.steps)
    assert shorter.steps == (first,)


# -- the command -----------------------------------------------------------------------------------


def test_a_run_without_faults(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--inputs", "20", "--seed", "run", "--keep", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("20 inputs in ")
    assert main(["--seconds", "0.01", "--keep", str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_fault_is_kept_and_can_be_replayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["--inputs", "3", "--seed", "kept", "--keep", str(tmp_path)]
    with monkeypatch.context() as broken:
        broken.setattr("tests.fuzz.world.World.finish", lambda _world: 1 / 0)
        assert main(arguments) == 1
        (file,) = tmp_path.iterdir()
        assert main(["--replay", str(file)]) == 1
    output = capsys.readouterr()
    assert "3 × ZeroDivisionError in test_fuzz.py" in output.out
    assert main(["--replay", str(file)]) == 0
    assert main(["--replay", "kept:0"]) == 0
    assert Input.from_json(file.read_text(encoding="utf-8")).steps == ()


def test_what_cannot_be_replayed_is_wrong_use() -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--replay", "nowhere"])
    assert stopped.value.code == 2


def test_ctrl_c_ends_a_run_with_a_summary(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_given: Input, is_weighed: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.fuzz.command.played", interrupt)
    assert main(["--seed", "stop"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("0 inputs in 0 s")
    assert "interrupted in input stop:0" in output.err


# -- the other engine --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not is_compiled(), reason="there may be no compiled engine; `make test-compiled` has one")
@pytest.mark.parametrize("words", [(), ("--shortcuts",)], ids=["as the book", "shortcuts"])
def test_the_same_inputs_come_to_the_same_on_both_engines(words: tuple[str, ...]) -> None:
    said = {}
    for engine in ENGINES:
        command = [sys.executable, "-m", "tests.fuzz", "--engine", engine, "--seed", "both", "--inputs", "1500", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        said[engine] = done.stdout.splitlines()[1]
    assert said["source"].startswith("engine source, seed both, verdict ")
    assert said["compiled"] == said["source"].replace("source", "compiled")


def test_a_verdict_tells_what_was_said_from_what_was_not() -> None:
    steps = ((PRODUCER, "write", 0, 3), (PRODUCER, "flush", 0))
    ends = {play(Input(PRODUCER, FlinkVersion.V2_2, 0, given)) for given in (steps[:0], steps[:1], steps)}
    assert len(ends) == 2  # nobody has asked for what was flushed
    assert play(Input(CONSUMER, FlinkVersion.V2_2, 0, ())) not in ends
