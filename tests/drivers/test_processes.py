"""A job on processes: however it ends, the right error is raised, and no process, thread or file is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import ProcessRun, ThreadedRun
from refimpl.drivers.transport import ClusterKeys
from refimpl.errors import LocalUsageError, RemoteTransportError, UserCodeError
from refimpl.job import JobSnapshot, StreamEnvironment
from refimpl.records import ANY, BYTES, LONG, SpanningRecordSerializer, TypeSerializer
from refimpl.task import IterableReader, TumblingWindows
from tests.support.driver_rig import TIMEOUT_S, Tally, nothing_left
from tests.support.polling import until
from tests.support.small_jobs import Count

pytestmark = pytest.mark.slow

SMALL = Config(segment_size_bytes=256, num_buffers=80, buffer_timeout_ms=1)


def job(
    values: Iterable[object],
    sink: Callable[[object], object],
    function: Callable[[object], object] = lambda value: value,
    config: Config = SMALL,
    value_type: TypeSerializer = LONG,
) -> StreamEnvironment:
    """Source and map on TaskManager 0, each a task; sink on TaskManager 1."""
    environment = StreamEnvironment(config)
    (
        environment.source(lambda _subtask, _parallelism: IterableReader(values), type=value_type)
        .rebalance()
        .map(function, type=value_type)
        .rebalance()
        .sink(sink)
        .slot_sharing_group("sinks")
    )
    return environment


def chained(values: Iterable[object], function: Callable[[object], object]) -> StreamEnvironment:
    """Source and map in one task of TaskManager 0, where records are objects; the sink elsewhere."""
    environment = StreamEnvironment(SMALL)
    stream = environment.source(lambda _subtask, _parallelism: IterableReader(values))
    stream.map(function).rebalance().sink(print).slot_sharing_group("sinks")
    return environment


FOREVER = range(10**12)


# -- it ends well ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
def test_what_sinks_do_is_done_here_and_what_maps_do_is_done_there(count: int) -> None:
    results: list[tuple[int, int]] = []
    environment = job(range(300), lambda pid: results.append((pid, os.getpid())), lambda _: os.getpid())
    with nothing_left(), ProcessRun(environment, count) as run:
        assert run.start().join(TIMEOUT_S)
    assert results == [(run.process_ids[0], os.getpid())] * 300


def cores_of_threads(_value: object) -> list[list[int]]:
    found = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # one that has just ended
            found.append(sorted(os.sched_getaffinity(int(thread.name))))
    return found


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not let a process choose its core")
@pytest.mark.parametrize("is_asked", [False, True])
def test_every_thread_of_a_process_keeps_to_its_core(is_asked: bool) -> None:
    every = sorted(os.sched_getaffinity(0))
    chosen = [every[-1], every[0]]
    seen: list[list[list[int]]] = []
    environment = job(range(3), seen.append, cores_of_threads, value_type=ANY)
    with nothing_left(), ProcessRun(environment, 2, cores=chosen if is_asked else None) as run:
        found = [sorted(os.sched_getaffinity(each)) for each in run.process_ids]
        assert found == ([[core] for core in chosen] if is_asked else [every, every])
        assert run.start().join(TIMEOUT_S)
    assert len(seen) == 3
    for threads in seen:
        assert len(threads) > 3
        assert {tuple(each) for each in threads} == {(chosen[0],) if is_asked else tuple(every)}
    assert sorted(os.sched_getaffinity(0)) == every


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not let a process choose its core")
@pytest.mark.parametrize("cores", [[], [0], [0, 0, 0], [0, 4_096], [0, 0.0], "00", 0, [0, [0]]])
def test_cores_that_are_not_to_be_had_are_refused(cores: Any) -> None:
    there = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    with nothing_left(), pytest.raises(LocalUsageError) as caught:
        ProcessRun(job(range(3), print), 2, cores=cores)
    assert str(caught.value) == (
        f"cores is to name one for each of 2 TaskManagers, of those this process may use, {there}; it is {cores!r}"
    )


def test_a_system_that_lets_nobody_choose_cores_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    with pytest.raises(LocalUsageError, match=r"^this system does not let a process choose its core: "):
        ProcessRun(job(range(3), print), 2, cores=[0, 0])


def test_the_sink_of_windows_stays_here_whatever_it_holds() -> None:
    """A function that some operator of the job keeps by accident would have to travel with it."""
    kept, lock = [], threading.Lock()

    def keep(value: object) -> None:
        with lock:
            kept.append(value)

    environment = StreamEnvironment(SMALL)
    stream = environment.source(lambda _subtask, _parallelism: IterableReader(range(10)), type=LONG)
    keyed = stream.assign_timestamps(lambda value: value, 0).key_by(lambda value: value % 2)
    keyed.window(TumblingWindows(5)).aggregate(Count()).sink(keep).slot_sharing_group("sinks")
    with ProcessRun(environment) as run:
        assert run.start().join(TIMEOUT_S)
    assert sorted(kept) == [(0, 0, 5, 3), (0, 5, 10, 2), (1, 0, 5, 2), (1, 5, 10, 3)]


def test_processes_speak_over_tls_if_they_have_keys(keys: ClusterKeys) -> None:
    results: list[object] = []
    with nothing_left(), ProcessRun(job(range(500), results.append), security=keys) as run:
        assert run.start().join(TIMEOUT_S)
    assert results == list(range(500))


def test_what_user_code_prints_is_printed_here(capfd: pytest.CaptureFixture[str]) -> None:
    def say(n: int) -> int:
        print("saw", n)
        print("not a whole line", end="")
        print()
        return n

    with nothing_left():
        ProcessRun(job(range(50), [].append, say)).run()
    lines = capfd.readouterr().out.splitlines()
    assert sorted(line for line in lines if "saw" in line) == sorted(f"saw {n}" for n in range(50))
    assert lines.count("not a whole line") == 50


@pytest.mark.parametrize("driver", [ThreadedRun, ProcessRun])
def test_a_sink_sees_a_value_as_it_was_when_it_was_emitted(driver: type) -> None:
    def grow(n: int, seen: list[int] = []) -> list[int]:  # noqa: B006 - it is to be the same list
        seen.append(n)
        return seen

    results: list[list[int]] = []
    environment = StreamEnvironment(replace(SMALL, object_reuse=True))
    stream = environment.source(lambda _subtask, _parallelism: IterableReader(range(200)))
    stream.map(grow).sink(lambda value: results.append(list(value)))
    driver(environment, num_task_managers=1).run()
    assert results == [list(range(n + 1)) for n in range(200)]


# -- a process dies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_process_is_named_with_its_signal_and_the_others_end(number: int, sent: signal.Signals) -> None:
    with nothing_left(), ProcessRun(job(FOREVER, tally := Tally())) as run:
        run.start()
        tally.wait_for(500)
        os.kill(run.process_ids[number], sent)
        said = f"TaskManager tm-{number}, process {run.process_ids[number]}, was killed by {sent.name}"
        with pytest.raises(RemoteTransportError, match=said):
            run.join(TIMEOUT_S)
        assert run.is_done
    assert tally == list(range(len(tally)))


def test_after_a_death_one_still_sees_who_is_lost_and_what_it_was_seen_to_do() -> None:
    with nothing_left(), ProcessRun(job(FOREVER, tally := Tally())) as run:
        run.start()
        tally.wait_for(100)
        before = run.snapshot()
        assert [part.process_id for part in before.task_managers] == run.process_ids
        assert not any(part.is_lost for part in before.task_managers)
        os.kill(run.process_ids[1], signal.SIGKILL)
        with pytest.raises(RemoteTransportError, match="tm-1"):
            run.join(TIMEOUT_S)
        after = run.snapshot()
        assert [part.is_lost for part in after.task_managers] == [False, True]
        assert after.task_managers[1].tasks == before.task_managers[1].tasks


def test_a_death_known_late_is_still_the_reason_and_the_run_is_not_over_before_it_is_known(tmp_path: Path) -> None:
    def values(subtask: int) -> Iterator[int]:
        if subtask == 1:  # somebody else holds this process's pipe open, so the parent hears of its end only later
            command = [sys.executable, "-c", "import signal; signal.pause()"]
            holder = subprocess.Popen(command, pass_fds=[int(sys.argv[3])])
            (tmp_path / str(holder.pid)).touch()
        yield from range(10**9)

    class Values:
        def __init__(self, subtask: int) -> None:
            self.subtask = subtask

        def __iter__(self) -> Iterator[int]:
            return values(self.subtask)

    environment = StreamEnvironment(SMALL, 2)
    environment.source(lambda subtask, _n: IterableReader(Values(subtask))).rebalance().map(str).sink(bool)
    with nothing_left(), ProcessRun(environment) as run:
        run.start()
        holder = until(lambda: [int(file.name) for file in tmp_path.iterdir()])[0]
        try:
            os.kill(run.process_ids[1], signal.SIGKILL)
            until(lambda: run.error is not None)
            first = run.error
            assert not run.is_done
        finally:
            os.kill(holder, signal.SIGKILL)
        until(lambda: run.is_done)
        assert "tm-0 reads tm-1" in str(first)
        assert f"tm-1, process {run.process_ids[1]}, was killed by SIGKILL" in str(run.error)


def test_who_never_looked_at_a_cancelled_run_is_told_so() -> None:
    with nothing_left():
        run = ProcessRun(job(FOREVER, Tally())).start()
        run.cancel()
        with pytest.raises(LocalUsageError, match="nothing to look at"):
            run.snapshot()


def test_a_process_killed_in_the_middle_of_a_large_record_loses_nothing_that_arrived() -> None:
    config = Config(segment_size_bytes=1 << 20, num_buffers=20)
    environment = job(FOREVER, tally := Tally(), lambda n: n.to_bytes(4, "big") * 700_000, config)
    environment.graph.nodes[1].value_type = BYTES
    with nothing_left(), ProcessRun(environment) as run:
        run.start()
        tally.wait_for(5)
        os.kill(run.process_ids[0], signal.SIGKILL)
        with pytest.raises(RemoteTransportError, match="was killed by SIGKILL"):
            run.join(TIMEOUT_S)
    assert [len(value) for value in tally] == [2_800_000] * len(tally)
    assert [int.from_bytes(value[-4:], "big") for value in tally] == list(range(len(tally)))


def test_a_process_that_ends_by_itself_is_named_too() -> None:
    with nothing_left(), pytest.raises(RemoteTransportError, match=r"tm-0, process \d+, ended with status 0"):
        ProcessRun(job(range(10), print, lambda _: os._exit(0))).run()


# -- the user's code fails ---------------------------------------------------------------------------


class OddError(Exception):
    """Cannot be pickled: it holds a lock, and is made from two arguments."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} is not {second}")
        self.lock = threading.Lock()


def odd(n: object) -> object:
    if n == 37:
        raise OddError(1, 2)
    return n


def wrong(n: object) -> object:
    if n == 37:
        raise ValueError("not this one")
    return n


@pytest.mark.parametrize(
    ("function", "said", "cause"),
    [(wrong, "raised ValueError: not this one", ValueError), (odd, "raised OddError: 1 is not 2", None)],
)
def test_an_error_in_user_code_says_what_where_and_why(function: Callable, said: str, cause: type | None) -> None:
    with nothing_left(), pytest.raises(UserCodeError, match=said) as caught:
        ProcessRun(job(range(100), print, function)).run()
    error = caught.value
    assert (error.operator, error.subtask, error.record) == ("map", 0, 37)
    assert cause is None or isinstance(error.__cause__, cause)
    assert said.removeprefix("raised ").split(": ")[1] in str(error.__cause__)
    (note,) = error.__notes__
    assert note.startswith("in process ")
    assert f"in {function.__name__}" in note
    assert __file__ in note


class Held:
    """A record that is at home in its process only."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.lock = threading.Lock()

    def __deepcopy__(self, memo: object) -> Held:
        return Held(self.n)


def test_an_error_about_a_record_that_cannot_travel_comes_without_the_record() -> None:
    def refuse(record: Held) -> None:
        raise ValueError("not this one")

    with nothing_left(), pytest.raises(UserCodeError, match="not this one") as caught:
        ProcessRun(chained(Makes(Held, 10), refuse)).run()
    assert caught.value.operator == "map"
    assert "Held" in caught.value.record
    assert isinstance(caught.value.__cause__, ValueError)


class Makes:
    """An iterable that can be sent and makes its values where it is read."""

    def __init__(self, make: Callable[[int], object], count: int) -> None:
        self.make, self.count = make, count

    def __iter__(self) -> Iterator[object]:
        return map(self.make, range(self.count))


def test_a_result_that_cannot_travel_is_an_error_of_its_sink() -> None:
    environment = StreamEnvironment(SMALL)
    environment.source(lambda _subtask, _parallelism: IterableReader(Makes(Held, 10))).sink(print, name="printer")
    with nothing_left(), pytest.raises(UserCodeError, match="printer, subtask 0, raised LocalUsageError: this cannot"):
        ProcessRun(environment, 1).run()


class Homesick:
    """A value that cannot be made again anywhere else."""

    def __init__(self, process: int) -> None:
        if process != os.getpid():
            raise OSError("this is not my process")
        self.process = process

    def __reduce__(self) -> tuple[object, ...]:
        return Homesick, (self.process,)

    def __deepcopy__(self, memo: object) -> Homesick:
        return self


def test_a_result_that_cannot_be_read_here_is_an_error_of_its_sink() -> None:
    environment = StreamEnvironment(SMALL)
    values = Makes(lambda _: Homesick(os.getpid()), 10)
    environment.source(lambda _subtask, _parallelism: IterableReader(values)).sink(print, name="printer")
    with nothing_left(), pytest.raises(UserCodeError, match=r"printer, subtask 0, .*this is not my process"):
        ProcessRun(environment, 1).run()


def test_a_sink_that_fails_is_named_and_its_exception_is_the_cause() -> None:
    failure = OddError(3, 4)

    def refuse(n: int) -> None:
        if n == 20:
            raise failure

    with nothing_left(), pytest.raises(UserCodeError, match="sink, subtask 0, raised OddError: 3 is not 4") as caught:
        ProcessRun(job(FOREVER, refuse)).run()
    assert caught.value.__cause__ is failure
    assert (caught.value.operator, caught.value.subtask, caught.value.record) == ("sink", 0, 20)


@pytest.mark.parametrize("driver", [ThreadedRun, ProcessRun])
def test_a_sink_that_ends_the_program_ends_the_run(driver: type) -> None:
    with nothing_left(), pytest.raises(SystemExit, match="7"):
        driver(job(FOREVER, lambda _: sys.exit(7)), num_task_managers=2).run()


# -- what cannot be sent -----------------------------------------------------------------------------


def test_a_job_that_cannot_be_sent_is_refused_and_no_process_is_left() -> None:
    lock = threading.Lock()
    with nothing_left(), pytest.raises(LocalUsageError, match=r"cannot be sent to another process: .*lock"):
        ProcessRun(job(range(10), print, lambda n: (lock, n)))


def test_a_function_that_cannot_be_sent_is_refused_and_the_run_goes_on() -> None:
    lock = threading.Lock()
    with nothing_left(), ProcessRun(job(FOREVER, tally := Tally())) as run:
        run.start()
        with pytest.raises(LocalUsageError, match="cannot be sent"):
            run.swap_function("map", lambda n: (lock, n))
        tally.wait_for(len(tally) + 500)


def test_a_job_that_cannot_be_read_there_says_why() -> None:
    with nothing_left(), pytest.raises(LocalUsageError, match="OSError: this is not my process"):
        ProcessRun(job([Homesick(os.getpid())], print, value_type=ANY))


# -- while it runs -----------------------------------------------------------------------------------


def test_a_slow_sink_holds_everybody_up_and_little_lies_in_between() -> None:
    config = Config(segment_size_bytes=32_768, num_buffers=40, buffer_timeout_ms=1)
    environment = job(range(300), slow := Slow(Tally()), lambda n: bytes([n % 251]) * 100_000, config)
    environment.graph.nodes[1].value_type = BYTES
    with nothing_left(), ProcessRun(environment) as run:
        run.start()
        assert slow.reached.wait(TIMEOUT_S)
        before: dict[str, int] = {}
        while before != (before := counts(run.snapshot())):
            run.join(timeout_s=0.2)
        # Segments of both processes, what waits for the pipe and is on it, and the records in hand.
        most = (2 * 40 * 32_768 + 2 * 2**20) / 100_000 + 10
        assert before["map-0"] < most < 100
        slow.go.set()
        assert run.join(TIMEOUT_S)
    assert slow.sink == [bytes([n % 251]) * 100_000 for n in range(300)]


def test_an_error_elsewhere_is_known_while_a_sink_stands_still(tmp_path: Path) -> None:
    """Results may wait for a sink; what went wrong in their process must not."""
    is_held = tmp_path / "held"
    os.mkfifo(is_held)  # whoever reads it waits for a writer

    def function(n: int) -> int:
        if n == 3:
            is_held.read_bytes()
            raise ValueError("three")
        return n

    def sink(_: object) -> None:
        is_held.write_bytes(b"")
        with run._changed:
            run._changed.wait_for(lambda: run.error is not None, TIMEOUT_S)

    environment = job(FOREVER, sink, function)
    with nothing_left(), ProcessRun(environment, 1) as run, pytest.raises(UserCodeError, match="three"):
        run.start().join(TIMEOUT_S / 2)


class Slow:
    """A sink that lets nothing through before it may."""

    def __init__(self, sink: Tally) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        self.sink = sink

    def __call__(self, value: object) -> None:
        self.reached.set()
        assert self.go.wait(TIMEOUT_S)
        self.sink(value)


def counts(snapshot: JobSnapshot) -> dict[str, int]:
    return {task.name: task.num_records_out for task in snapshot.tasks}


def test_a_paused_run_stands_still_and_goes_on() -> None:
    with nothing_left(), ProcessRun(job(FOREVER, tally := Tally())) as run:
        run.start()
        tally.wait_for(500)
        run.pause()
        steps = -1
        while steps != (steps := run.snapshot().num_steps):
            run.join(timeout_s=0.05)  # each task ends the step it is in; then the count stands
        assert not run.join(timeout_s=0.05)
        assert run.snapshot().num_steps == steps
        run.resume()
        tally.wait_for(len(tally) + 5_000)
    assert tally == list(range(len(tally)))


class Shouting(SpanningRecordSerializer):
    """A learner's part that can be seen from outside."""

    def __init__(self) -> None:
        super().__init__()
        print("a new part")


def test_parts_and_functions_are_swapped_while_it_runs(capfd: pytest.CaptureFixture[str]) -> None:
    with nothing_left(), ProcessRun(job(FOREVER, tally := Tally())) as run:
        run.start()
        tally.wait_for(500)
        run.swap(SpanningRecordSerializer=Shouting)
        run.swap_function("map", lambda n: -n)
        while tally[-1] >= 0:
            tally.wait_for(len(tally) + 1)
        other = Tally()
        run.swap_function("sink", other)
        other.wait_for(100)
        for name, function, said in (("nap", abs, "no operator called 'nap'"), ("map", 3, "3 is no function")):
            with pytest.raises(LocalUsageError, match=said):
                run.swap_function(name, function)
        with pytest.raises(LocalUsageError, match="did you mean SpanningRecordSerializer"):
            run.swap(SpanningRecordSerialiser=Shouting)
    everything = [*tally, *other]
    assert [abs(n) for n in everything] == list(range(len(everything)))
    assert capfd.readouterr().out.count("a new part") == 2  # source and map


def test_an_interrupted_question_does_not_give_its_answer_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_given: object) -> None:
        raise KeyboardInterrupt

    with nothing_left(), ProcessRun(job(FOREVER, Tally())) as run:
        run.start()
        with monkeypatch.context() as patch:
            patch.setattr("refimpl.drivers.processes.group.wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run.snapshot()
        assert run.pause() is None
        assert isinstance(run.snapshot(), JobSnapshot)


# -- a process that does not answer ------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refimpl.drivers.processes.group._SECONDS_TO_ANSWER", 0.5)


@pytest.mark.usefixtures("impatient")
def test_one_that_is_stopped_keeps_nobody_waiting_and_goes_on_when_it_may() -> None:
    with nothing_left(), ProcessRun(job(FOREVER, tally := Tally())) as run:
        run.start()
        tally.wait_for(500)
        before = run.snapshot()
        os.kill(run.process_ids[1], signal.SIGSTOP)
        after = until(lambda: (shot := run.snapshot()).task_managers[1].is_silent and shot)
        assert [part.is_silent for part in (*before.task_managers, *after.task_managers)] == [False, False, False, True]
        said = f"tm-1, process {run.process_ids[1]}, does not answer"
        for command in (run.pause, lambda: run.slow("map", 1), lambda: run.swap_function("map", abs)):
            with pytest.raises(RemoteTransportError, match=said):
                command()
        assert run.is_paused
        assert not run.join(timeout_s=0.05)
        os.kill(run.process_ids[1], signal.SIGCONT)
        until(lambda: not any(part.is_silent for part in run.snapshot().task_managers))
        run.resume()
        assert not run.is_paused
        tally.wait_for(len(tally) + 5_000)
    assert tally == list(range(len(tally)))


@pytest.mark.usefixtures("impatient")
def test_one_that_is_stopped_and_was_never_seen_is_named() -> None:
    with nothing_left(), ProcessRun(job(FOREVER, Tally())) as run:
        run.start()
        os.kill(run.process_ids[0], signal.SIGSTOP)
        with pytest.raises(RemoteTransportError, match=f"tm-0, process {run.process_ids[0]}, does not answer"):
            until(lambda: run.snapshot() and None)
        os.kill(run.process_ids[0], signal.SIGCONT)


@pytest.mark.usefixtures("impatient")
def test_one_that_is_stopped_is_killed_at_the_end_whatever_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was told is more than a pipe holds."""
    monkeypatch.setattr("refimpl.drivers.processes.group._SECONDS_TO_STOP", 1.0)
    large = bytes(1 << 20)
    with nothing_left(), ProcessRun(job(FOREVER, tally := Tally())) as run:
        run.start()
        tally.wait_for(100)
        os.kill(run.process_ids[0], signal.SIGSTOP)
        with pytest.raises(RemoteTransportError, match="tm-0"):
            run.swap_function("map", lambda n: n if large else None)
    assert run.is_done
    assert run.error is None


# -- ended from outside ------------------------------------------------------------------------------


def test_a_cancelled_run_wakes_who_waits_for_it() -> None:
    with nothing_left(), ProcessRun(job(FOREVER, tally := Tally())) as run:
        run.start()
        waiting = threading.Thread(target=run.join)
        waiting.start()
        tally.wait_for(100)
        run.cancel()
        waiting.join(TIMEOUT_S)
        assert not waiting.is_alive()
        assert run.is_done
        with pytest.raises(LocalUsageError, match="have ended"):
            run.snapshot()
        with pytest.raises(LocalUsageError, match="has ended"):
            run.pause()


def test_a_sink_may_look_at_the_run_and_end_it() -> None:
    seen: list[object] = []

    def look(value: int) -> None:
        seen.append(run.snapshot() if value == 5 else value)
        if value == 9:
            run.cancel()

    with nothing_left(), ProcessRun(job(FOREVER, look)) as run:
        assert run.start().join(TIMEOUT_S)
    assert isinstance(seen[5], JobSnapshot)
    assert seen[6:] == [6, 7, 8, 9]


def test_user_code_that_never_returns_does_not_keep_its_process() -> None:
    with nothing_left(), ProcessRun(job(range(10), tally := Tally(), lambda n: n if n < 5 else stuck())) as run:
        run.start()
        tally.wait_for(5)


def stuck() -> None:
    threading.Event().wait()


def test_a_run_that_was_never_started_leaves_nothing() -> None:
    with nothing_left():
        with ProcessRun(job(FOREVER, print)):
            pass
        with pytest.raises(LocalUsageError, match="not been started"), ProcessRun(job(FOREVER, print)) as run:
            run.join()


def test_the_last_snapshot_is_that_of_the_end() -> None:
    with nothing_left(), ProcessRun(job(range(100), Tally())) as run:
        run.start().join(TIMEOUT_S)
        assert counts(run.snapshot()) == {"source-0": 100, "map-0": 100, "sink-0": 0}
