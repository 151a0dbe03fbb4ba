"""What user code raises or answers, and what the system refuses: each ends the run with its reason, on every driver."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import ProcessRun, Simulation, SparkRun, ThreadedRun
from refimpl.drivers.loop import AsyncRun
from refimpl.drivers.transport.few_warnings import FewWarnings
from refimpl.errors import UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord

DRIVERS: dict[str, Callable[[StreamEnvironment], Any]] = {
    "simulation": Simulation,
    "threads": ThreadedRun,
    "loop": AsyncRun,
    "processes": lambda job: ProcessRun(job, num_task_managers=1),
}


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot be said")


class NotPickledError(Exception):
    def __reduce__(self) -> tuple[object, ...]:
        raise ValueError("it cannot be sent")


class InterruptsItsWriterError(Exception):
    def __reduce__(self) -> tuple[object, ...]:
        raise KeyboardInterrupt


class EndsItsReaderError(Exception):
    def __reduce__(self) -> tuple[object, ...]:
        return _exit, ()


class LyingError(Exception):
    @property
    def __class__(self) -> type:  # type: ignore[override]
        return AssertionError


class NoClassError(Exception):
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise KeyboardInterrupt


class OddText(str):
    def __len__(self) -> int:
        raise KeyboardInterrupt


class OddTextError(Exception):
    def __str__(self) -> str:
        return OddText("odd")


class SilentError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class OtherArgumentsError(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(first)
        self.second = second


def _exit() -> None:
    raise SystemExit(0)


def _recursion() -> Exception:
    try:
        return _recursion()
    except RecursionError as error:
        return error


def _circle() -> Exception:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


RAISED: dict[str, Callable[[], BaseException]] = {
    "SilentError, which cannot be shown": SilentError,
    "InterruptsItsWriterError": InterruptsItsWriterError,
    "NoClassError": NoClassError,
    "EndsItsReaderError": EndsItsReaderError,
    "SystemExit: 0": lambda: SystemExit(0),
    "MuteError, which cannot be shown": MuteError,
    "NotPickledError": NotPickledError,
    "LyingError": LyingError,
    "OddTextError: odd": OddTextError,
    "OtherArgumentsError: 1": lambda: OtherArgumentsError(1, 2),
    "SystemExit: None": lambda: SystemExit(None),
    "SystemExit: 256": lambda: SystemExit(256),
    "GeneratorExit": GeneratorExit,
    "StopIteration: 1": lambda: StopIteration(1),
    "RecursionError: maximum": _recursion,
    "ValueError: first": _circle,
    "ValueError: long": lambda: ValueError("long " * 1_000_000),
    "ExceptionGroup: two": lambda: ExceptionGroup("two", [MuteError(), NotPickledError()]),
}
OTHERS: dict[type[BaseException], Callable[[], BaseException]] = {
    KeyboardInterrupt: KeyboardInterrupt,
    asyncio.CancelledError: asyncio.CancelledError,
    SystemExit: lambda: SystemExit("bye"),
    BaseExceptionGroup: lambda: BaseExceptionGroup("one", [SystemExit(0)]),
}


class Reader:
    """Ten numbers; its answer number 4 is that of `answer`."""

    def __init__(self, answer: Callable[[], Any] | None = None) -> None:
        self.num_reads = 0
        self.answer = answer

    def read(self, max_records: int) -> Any:
        self.num_reads += 1
        if self.answer is not None and self.num_reads == 4:
            return self.answer()
        return [StreamRecord(self.num_reads)] if self.num_reads <= 10 else None

    def close(self) -> None: ...


def raising(make: Callable[[], BaseException]) -> Callable[..., object]:
    def function(value: int = 4) -> int:
        if value == 4:
            raise make()
        return value

    return function


def job(where: str, make: Callable[[], BaseException]) -> StreamEnvironment:
    environment = StreamEnvironment(Config(chaining=where != "map, behind the network"))
    source = environment.source(lambda *_: Reader(raising(make) if where == "source" else None))
    mapped = source.map(raising(make) if where.startswith("map") else abs)
    mapped.sink(raising(make) if where == "sink" else abs)
    return environment


@pytest.mark.sampled
@pytest.mark.parametrize("where", ["source", "map", "map, behind the network", "sink"])
@pytest.mark.parametrize("drive", DRIVERS)
def test_whatever_user_code_raises_ends_the_run_and_is_named(drive: str, where: str, is_whole: bool) -> None:
    few = 2 if drive == "processes" and not is_whole else 5
    for said, make in [*RAISED.items()][: None if where == "map" and drive != "processes" else few]:
        with pytest.raises(UserCodeError, match=rf"^{where.split(',')[0]}, subtask 0, raised {said}") as caught:
            DRIVERS[drive](job(where, make)).run()
        assert len(str(caught.value)) < 1_500


@pytest.mark.parametrize("drive", ["simulation", "threads", "loop"])
def test_a_program_that_user_code_ends_with_a_status_is_ended_with_it_and_where_is_noted(drive: str) -> None:
    for where in ("source", "map", "map, behind the network", "sink"):
        with pytest.raises(SystemExit, match="3") as caught:
            DRIVERS[drive](job(where, lambda: SystemExit(3))).run()
        operator, record = where.split(",")[0], None if where == "source" else 4
        (note,) = caught.value.__notes__
        assert note == f"{operator}, subtask 0, raised SystemExit: 3 while processing {record}"


@pytest.mark.parametrize("drive", ["threads", "processes"])
def test_an_interrupt_that_nobody_can_have_pressed_names_its_task(drive: str) -> None:
    with pytest.raises(UserCodeError, match=r"^map, subtask 0, raised KeyboardInterrupt"):
        DRIVERS[drive](job("map, behind the network", KeyboardInterrupt)).run()


@pytest.mark.parametrize("drive", DRIVERS)
def test_nothing_that_user_code_raises_looks_like_success(drive: str) -> None:
    for kind, make in OTHERS.items():
        with pytest.raises((kind, UserCodeError)):
            DRIVERS[drive](job("map", make)).run()


# -- readers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "named"),
    [(7, "int"), ("ab", "str"), (b"", "bytes"), ({1: 2}, "dict"), (iter([StreamRecord(1)]), "list_iterator"),
     ({StreamRecord}, "set"), (StreamRecord(1), "StreamRecord"), (False, "bool")],
    ids=lambda case: type(case).__name__,
)  # fmt: skip
@pytest.mark.parametrize("drive", ["simulation", "threads", "loop"])
def test_a_reader_that_answers_no_list_is_told_what_to_answer(drive: str, answer: object, named: str) -> None:
    environment = StreamEnvironment()
    environment.source(lambda *_: Reader(lambda: answer), "numbers").sink(abs)
    with pytest.raises(UserCodeError, match=rf"numbers, .*read returned a {named}; it is to return a list of"):
        DRIVERS[drive](environment).run()


class EmptyUntil:
    """Has nothing for a while; counts how often it is asked."""

    num_reads = 0

    def __init__(self, until_s: float) -> None:
        self.until_s = until_s

    def read(self, max_records: int) -> list[StreamRecord] | None:
        EmptyUntil.num_reads += 1
        return [] if time.monotonic() < self.until_s else None

    def close(self) -> None: ...


@pytest.mark.parametrize("drive", ["simulation", "threads", "loop"])
@pytest.mark.parametrize("shortcuts", [False, True])
def test_a_reader_that_has_nothing_is_not_asked_all_the_time(drive: str, shortcuts: bool) -> None:
    """In 0.2 s some twenty times, where without a rest it would be thousands."""
    environment = StreamEnvironment(Config(shortcuts=shortcuts))
    EmptyUntil.num_reads = 0
    environment.source(lambda *_: EmptyUntil(time.monotonic() + 0.2)).sink(abs)
    DRIVERS[drive](environment).run()
    assert 2 <= EmptyUntil.num_reads < 100


# -- what the system refuses -----------------------------------------------------------------------


class Refusing:
    """Lets so many threads start, and refuses the next one as the system does."""

    def __init__(self, num_left: int) -> None:
        self.num_left, self.has_refused = num_left, False
        self._start = threading.Thread.start

    def __call__(self, thread: threading.Thread) -> None:
        self.num_left -= 1
        if self.num_left == -1:
            self.has_refused = not isinstance(thread, threading.Timer)  # without that a connection ends sooner
            raise RuntimeError("can't start new thread")
        self._start(thread)


@pytest.fixture
def nothing_runs_on() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(120)
        assert not thread.is_alive(), f"{thread} is left"


@pytest.mark.usefixtures("nothing_runs_on")
@pytest.mark.parametrize("number", range(30))
def test_a_thread_that_is_refused_ends_a_run_on_threads(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = StreamEnvironment(Config(chaining=False), parallelism=2)
    stream = environment.from_collection(range(200)).rebalance().map(abs).slot_sharing_group("other")
    stream.rebalance().sink(abs)
    refusing = Refusing(number)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: refusing(thread))
    reasons = []
    with ThreadedRun(environment, num_task_managers=2) as run:
        try:
            assert run.start().join(120), "it waits for ever"
        except RuntimeError as error:
            reasons.append(str(error))
    assert reasons == ["can't start new thread"] * refusing.has_refused


@pytest.mark.usefixtures("nothing_runs_on")
@pytest.mark.parametrize("refused", ["tm-0 (accept)", "source-0", "sink-1", "tm-0 (flush)", "tm-1 (barriers)"])
def test_whoever_waits_for_a_run_that_could_not_start_is_told_why(
    refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = StreamEnvironment(Config(chaining=False), parallelism=2)
    environment.from_collection(range(20)).rebalance().map(abs).slot_sharing_group("other").rebalance().sink(abs)
    run = ThreadedRun(environment, num_task_managers=2)
    start = threading.Thread.start

    def start_unless_refused(thread: threading.Thread) -> None:
        if thread.name == refused:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_unless_refused)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        run.start()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="can't start new thread"):
            assert run.join(120), "it waits for ever"
    assert run.is_done
    assert str(run.error) == "can't start new thread"


def test_whoever_waits_for_processes_that_could_not_start_is_told_why() -> None:
    def refuse_threads(_subtask: int, _parallelism: int) -> Reader:
        refusing = Refusing(0)
        threading.Thread.start = lambda thread: refusing(thread)  # type: ignore[method-assign]
        return Reader()

    environment = StreamEnvironment()
    environment.source(refuse_threads).sink(abs)
    run = ProcessRun(environment, 1)
    for wait in (run.start, run.join, run.join):
        with pytest.raises(RuntimeError, match="can't start new thread"):
            wait()


def test_whoever_waits_for_a_run_on_spark_that_could_not_start_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = StreamEnvironment()
    environment.from_collection(range(20)).sink(abs)
    refusing = Refusing(0)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: refusing(thread))
    run = SparkRun(environment, session=None, num_task_managers=1)  # type: ignore[arg-type] # it is asked nothing before it starts
    for wait in (run.start, lambda: run.join(120)):
        with pytest.raises(RuntimeError, match="can't start new thread"):
            wait()
    run.close()
    assert run.is_done


@pytest.mark.parametrize("number", range(6))
def test_a_thread_that_is_refused_leaves_no_process(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = StreamEnvironment(parallelism=2)
    environment.from_collection(range(20)).rebalance().sink(abs)
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **more: started.append(popen(*args, **more)) or started[-1])
    refusing = Refusing(number)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: refusing(thread))
    with pytest.raises(RuntimeError, match="can't start new thread"):
        ProcessRun(environment)
    assert [process.poll() is None for process in started] == [False] * len(started)


def test_a_process_that_is_refused_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = StreamEnvironment(parallelism=2)
    environment.from_collection(range(20)).rebalance().sink(abs)
    popen, started = subprocess.Popen, list[subprocess.Popen[bytes]]()

    def second_is_refused(*args: Any, **more: Any) -> subprocess.Popen[bytes]:
        if started:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(popen(*args, **more))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", second_is_refused)
    with pytest.raises(OSError, match="Resource temporarily unavailable"):
        ProcessRun(environment)
    assert started[0].poll() is not None


# -- warnings --------------------------------------------------------------------------------------


def test_warnings_that_another_end_can_cause_are_few_and_the_rest_is_counted() -> None:
    now_s = 0.0
    few = FewWarnings(lambda: now_s)

    def warn() -> logging.LogRecord | None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, "refused %s", ("it",), None)
        return record if few.filter(record) else None

    assert sum(warn() is not None for _ in range(1_000)) == 20
    now_s = 61.0
    first, second = warn(), warn()
    assert first is not None
    assert second is not None
    assert [first.getMessage(), second.getMessage()] == ["refused it (980 more were left out before)", "refused it"]
