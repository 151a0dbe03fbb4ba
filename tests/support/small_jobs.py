"""What the tests of several files build their small jobs from."""

from __future__ import annotations

from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.task import Operator


def run(environment: StreamEnvironment, seed: int = 0) -> None:
    """Run it to its end in the simulation."""
    with Simulation(environment, seed=seed) as simulation:
        simulation.run()


class Count:
    """Aggregates values to their number."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, _value: object, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Where(Operator):
    """Puts the subtask it runs in before each value."""

    def process(self, record: StreamRecord) -> None:
        self.output.collect(StreamRecord((self.context.subtask, record.value)))
