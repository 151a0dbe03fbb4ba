"""The functions of the sinks of a job whose tasks are in other processes: called here, where the user waits."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from refimpl.drivers.processes.messages import Committed, Results, unpack
from refimpl.errors import USER_CODE_RAISES, UserCodeError, failure_of, is_engines
from refimpl.job.stream_graph import StreamNode

__all__ = ["SinkFunctions"]


class SinkFunctions:
    """Those of a job, whose operators are `nodes`. Any thread may call them, several at a time."""

    def __init__(self, nodes: Mapping[int, StreamNode]) -> None:
        self._nodes = nodes
        self._functions = {number: node.sink for number, node in nodes.items() if node.sink is not None}
        self._committing: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def swap(self, name: str, function: Callable[[Any], object]) -> bool:
        """Put another function in the place of that of the sink called `name`; false if there is none."""
        named = [number for number in self._functions if self._nodes[number].name == name]
        for number in named[:1]:
            self._functions[number] = function
        return bool(named)

    def deliver(self, results: Results, is_wanted: Callable[[], bool]) -> None:
        """Call the functions with these values, as long as they are wanted.

        Raises:
            BaseException: what a function raised; the same as where sinks run in their tasks.
        """
        for node_id, subtask, data in results.values:
            if not is_wanted():
                return
            function, value = self._functions[node_id], None
            try:
                value = unpack(data)
                function(value)
            except BaseException as error:
                raise self._failure_of(node_id, subtask, value, error) from error

    def commit(self, committed: Committed, is_wanted: Callable[[], bool]) -> None:
        """Call the function of a sink that holds values back; what a dead attempt has handed over before goes on.

        Raises:
            BaseException: as `deliver`.
        """
        number, subtask = committed.node_id, int(committed.transaction.split("-")[0])
        held = self._nodes[number].held_sink
        assert held is not None, f"{self._nodes[number].name} has committed, and holds nothing back"
        with self._committing[number]:  # that of a dead attempt may still be at it
            if not is_wanted():
                return
            try:
                held.give(committed.transaction, unpack(committed.values))
            except BaseException as error:
                raise self._failure_of(number, subtask, None, error) from error

    def _failure_of(self, node_id: int, subtask: int, value: object, error: BaseException) -> BaseException:
        """What to raise for what a sink raised: the same as where sinks run in their tasks."""
        if is_engines(error) or not issubclass(type(error), USER_CODE_RAISES):
            return error
        try:
            raise failure_of(self._nodes[node_id].name, subtask, value, error) from error
        except (SystemExit, UserCodeError) as failure:
            return failure
