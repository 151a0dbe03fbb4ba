"""The connections of one TaskManager on threads: those it makes to read, and those others make to read from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from refimpl.drivers.threads.connection_io import ConnectionIO, ConnectionOwner
from refimpl.drivers.transport.ends import ConsumerEnd, ProducerEnd
from refimpl.drivers.transport.streams import Listener, Security, listen, reach
from refimpl.job.deployment import Deployment

__all__ = ["TaskManagerConnections"]


class TaskManagerConnections:
    """The connections of `owner`, whose part of the job is `deployment`.

    If there are other TaskManagers it listens at `address`, on `host`, from the beginning; else that is `None`.

    Raises:
        ConfigError: it cannot listen there.
    """

    def __init__(
        self, owner: ConnectionOwner, deployment: Deployment, is_alone: bool, host: str, security: Security | None
    ) -> None:
        self.open: list[ConnectionIO] = []
        self._reading: list[tuple[int, ConnectionIO]] = []  # with the number of who is read
        self._owner = owner
        self._deployment = deployment
        self._security = security
        self._is_closing = False
        self._listener: Listener | None = None if is_alone else listen(host, 0, security)
        self.address = None if self._listener is None else self._listener.address

    def connect(
        self, addresses: Sequence[tuple[str, int] | None], is_cancelled_within: Callable[[float], bool]
    ) -> None:
        """Read from the other TaskManagers; `addresses` are those of all, by number.

        An attempt that fails is repeated unless `is_cancelled_within` so many ms.
        """
        deployment = self._deployment
        for connection_id in deployment.shuffle.remote_reads:
            address = addresses[connection_id.task_manager]
            assert address is not None, f"nothing listens at {connection_id}"
            host, port = address
            name = f"tm-{deployment.task_manager} reads {connection_id} at {host}:{port}"
            end = ConsumerEnd(deployment.shuffle.connect(connection_id, name))
            open_stream = partial(reach, host, port, self._security, deployment.config, is_cancelled_within)
            io = ConnectionIO(self._owner, end, open_stream)
            self.open.append(io)
            self._reading.append((connection_id.task_manager, io))
        for io in self.open:
            io.start()

    def accept(self) -> None:
        """Let others read what is produced here, until `stop`. Not under the monitor; on a thread of its own."""
        shuffle, number = self._deployment.shuffle, self._deployment.task_manager
        while self._listener is not None and (incoming := self._listener.accept()) is not None:
            with self._owner.monitor:
                if self._is_closing:  # it came in while the others were being stopped
                    incoming.close()
                    return
                end = ProducerEnd(shuffle.accept(f"tm-{number} to {incoming.peer}"), shuffle)
                open_stream = partial(incoming.open, self._deployment.config.connect_timeout_ms / 1000)
                io = ConnectionIO(self._owner, end, open_stream, incoming.close)
                self.open = [each for each in self.open if not each.is_finished]
                self.open.append(io)
                io.start()

    @property
    def are_finished(self) -> bool:
        """Whether all there were so far have ended."""
        return all(each.is_finished for each in self.open)

    @property
    def unreached(self) -> frozenset[int]:
        """The TaskManagers to which no connection could be made."""
        return frozenset(number for number, io in self._reading if io.has_not_opened)

    def stop(self) -> None:
        """Accept no more, and cut all. Not under the monitor; safe to repeat."""
        if self._listener is not None:
            self._listener.close()
        with self._owner.monitor:
            self._is_closing = True
            for io in self.open:
                io.stop()

    def settle(self, within_s: float) -> None:
        """Wait until all have ended, but not longer than that."""
        give_up_s = time.monotonic() + within_s
        for io in self.open:
            io.join(max(0.0, give_up_s - time.monotonic()))
