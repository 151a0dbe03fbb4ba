"""Parts of a channel's talk in a running job on two TaskManagers: the bytes it is made of, and who leads it.

A part that raises is taken out, and ours goes on from where the talk was: news that were taken and not passed on are
passed on then.
"""

from __future__ import annotations

from typing import Any

from course.swap.channels import await_readers, made, standing_still
from course.swap.guard import Guard
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.exchange import (
    WIRE_FORMAT,
    AddCredit,
    JavaError,
    Message,
    PartitionReader,
    PartitionRequest,
    ResumeConsumption,
    WireFormat,
)

__all__ = ["guarded_talk", "guarded_wire", "put_talks", "put_wires"]


def put_wires(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let the learner's part write and read what every consumer says and hears; with ours if there is no guard."""
    part = guarded_wire(guard) if guard is not None else WireFormat
    await_readers(job)
    with standing_still(job) as deployments:
        for deployment in deployments:
            for connection in deployment.shuffle.consumer_connections:
                if (wire := made(part, (), guard)) is not None:
                    connection.decoder.wire = WIRE_FORMAT if guard is None else wire


def guarded_wire(guard: Guard) -> type[WireFormat]:
    """The learner's class with ours behind it."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        def request(self, *given: Any) -> bytes:
            if not guard.is_out:
                with guard.call():
                    return bytes(super().request(*given))
            return WireFormat.request(self, *given)

        def add_credit(self, credit: int, receiver: bytes) -> bytes:
            if not guard.is_out:
                with guard.call():
                    return bytes(super().add_credit(credit, receiver))
            return WireFormat.add_credit(self, credit, receiver)

        def resume(self, receiver: bytes) -> bytes:
            if not guard.is_out:
                with guard.call():
                    return bytes(super().resume(receiver))
            return WireFormat.resume(self, receiver)

        def read_response(self, header: bytes) -> tuple[bytes, int, int, int, int, int]:
            if not guard.is_out:
                with guard.call():
                    receiver, number, backlog, kind, compressed, size = super().read_response(header)
                    return bytes(receiver), int(number), int(backlog), int(kind), int(compressed), int(size)
            return WireFormat.read_response(self, header)

    return Guarded


def put_talks(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let the learner's part lead the talk of every remote channel; with ours if there is no guard."""
    part = guarded_talk(guard) if guard is not None else PartitionReader
    await_readers(job)
    with standing_still(job) as deployments:
        for deployment in deployments:
            for connection in deployment.shuffle.consumer_connections:
                for before in list(connection.readers.values()):
                    arguments = before.channel, before.request, deployment.config, connection.name
                    if (reader := made(part, arguments, guard)) is not None:
                        vars(reader).update(vars(before))
                        connection.replace(reader)


def guarded_talk(guard: Guard) -> type[PartitionReader]:
    """The learner's class with ours behind each of its decisions."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        channel: Any
        is_waiting: bool
        wait_ms: int

        def on_error(self, error: JavaError) -> bool:
            before = self.is_waiting, self.wait_ms
            if not guard.is_out:
                with guard.call():
                    return bool(super().on_error(error))
                self.is_waiting, self.wait_ms = before
            return PartitionReader.on_error(self, error)

        def ask_again(self) -> PartitionRequest:
            if not guard.is_out:
                with guard.call():
                    request: PartitionRequest = super().ask_again()
                    return request
            return PartitionReader.ask_again(self)

        def news(self) -> list[Message]:
            if guard.is_out:
                return PartitionReader.news(self)
            channel = self.channel
            self.channel = watched = _Watched(channel)
            try:
                with guard.call():
                    return list(super().news())
            finally:
                self.channel = channel
            return watched.messages()

    return Guarded


class _Watched:
    """A channel that remembers the news it has given."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._credit, self._may_go_on = 0, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def take_news(self) -> tuple[int, bool]:
        credit, may_go_on = self._channel.take_news()
        self._credit += credit
        self._may_go_on |= may_go_on
        return credit, may_go_on

    def messages(self) -> list[Message]:
        """All that there is to say, and all that was taken."""
        self.take_news()
        receiver = self._channel.receiver
        news: list[Message] = [AddCredit(self._credit, receiver)] if self._credit else []
        return [*news, ResumeConsumption(receiver)] if self._may_go_on else news
