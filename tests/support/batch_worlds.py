"""The script of a job that runs region by region: what runs, what has been kept, and who reads it again."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from refimpl.batch_options import ExchangeMode, ExecutionMode, InputConstraint, ScheduleMode
from refimpl.cluster import FixedDelayRestart, RegionState
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import Boundedness, StreamEnvironment
from refimpl.task.source import IterableReader

__all__ = ["Regions"]

Lines = Iterator[str]


class Regions:
    """A source of 2 subtasks, whose numbers are dealt out to a task of 2, and what that makes goes to one sink.

        regions mode=BATCH schedule=PIPELINED_REGION input=ANY slots=0 restarts=0 source=bounded
        until REGION STATE       take steps until that region is waiting, running or finished
        until NAME starts        … until that task has begun
        step N                   take so many steps
        crash                    let what runs fail
        run                      go on to the end
        now mode=… schedule=…    make another job in the place of this one

    Of a job that cannot run the state says why.
    """

    def __init__(self, words: list[str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._make(words)

    def do(self, words: list[str]) -> Lines:
        """Carry one command out.

        Raises:
            ValueError: it is none.
        """
        match words:
            case ["until", number, state]:
                self._until(number, state)
            case ["step", number]:
                self._run().run(max_steps=int(number))
            case ["crash"]:
                self._run().crash()
                yield "what runs has failed"
            case ["run"]:
                self._run().run()
            case ["now", *options]:
                self.close()
                self._folder = tempfile.TemporaryDirectory()
                self._make(options)
            case _:
                raise ValueError("is none of until, step, crash, run, now")

    def state(self) -> Lines:
        """How far each region is, and its tasks; what is kept; and what has been read and found so far."""
        for line in self._state():
            yield from wrap(line, 120, subsequent_indent="  ")

    def _state(self) -> Lines:
        if self._simulation is None:
            yield f"refused: {self._refused}"
            return
        run, regions = self._simulation, self._simulation.regions
        if regions is None:
            yield "one region, all tasks"
        else:
            for number, state in enumerate(regions.job.schedule.states):
                executions = regions.job.schedule.executions(number)
                attempts = [
                    f"{each.name} (attempt {each.attempt})" if each.attempt else each.name for each in executions
                ]
                yield f"region {number}: {state.value}: {', '.join(attempts)}"
            most_slots = regions.job.schedule.most_slots
            yield f"{regions.num_result_bytes} B of blocking results; slots in use at one time at most: {most_slots}"
        for name, task in run.tasks.items():
            yield f"{name}: {task.progress.value if task.is_started else 'not started'}"
        num_begun = sum(self._num_read.values())
        yield f"times that a source began to read: {num_begun}; numbers at the sink: {len(self._found)}"

    def close(self) -> None:
        if self._simulation is not None:
            self._simulation.__exit__()
        self._folder.cleanup()

    def _make(self, words: list[str]) -> None:
        given = {"mode": "BATCH", "schedule": "PIPELINED_REGION", "input": "ANY", "slots": "0", "restarts": "0"}
        given |= {"source": "bounded"} | dict(word.split("=") for word in words)
        self._found: list[int] = []
        self._num_read: Counter[int] = Counter()
        self._simulation: Simulation | None = None
        self._refused = ""
        modes = {each.name: each for each in (*ExecutionMode, *ExchangeMode)}
        config = Config(
            segment_size_bytes=32,
            num_buffers=32,
            source_batch=4,
            execution_mode=modes[given["mode"]],
            schedule_mode=ScheduleMode[given["schedule"]],
            input_constraint=InputConstraint[given["input"]],
            spill_directory=self._folder.name,
        )
        job = self._job(config, Boundedness(given["source"]))
        num_restarts, num_slots = int(given["restarts"]), int(given["slots"])
        restart = FixedDelayRestart(num_restarts, 5.0)
        try:
            self._simulation = Simulation(job, policy="first", restart=restart, num_slots=num_slots or None)
        except LocalUsageError as error:
            self._refused = str(error)

    def _job(self, config: Config, boundedness: Boundedness) -> StreamEnvironment:
        environment = StreamEnvironment(config, 2)

        def numbers(subtask: int, of: int) -> Iterator[int]:
            self._num_read[subtask] += 1
            yield from range(subtask, 24, of)

        source = environment.source(
            lambda subtask, of: IterableReader(numbers(subtask, of)), "numbers", boundedness=boundedness
        )
        source.shuffle().map(abs, "dealt").rebalance().sink(self._found.append).set_parallelism(1)
        return environment

    def _run(self) -> Simulation:
        if self._simulation is None:
            raise ValueError("the job was refused")
        return self._simulation

    def _until(self, what: str, state: str) -> None:
        run = self._run()
        while not self._is_so(run, what, state):
            if run.step() is None:
                raise ValueError(f"{what} never {state}")

    def _is_so(self, run: Simulation, what: str, state: str) -> bool:
        if state == "starts":
            return run.tasks[what].is_started
        assert run.regions is not None, "there are regions"
        return run.regions.job.schedule.states[int(what)] is RegionState(state)
