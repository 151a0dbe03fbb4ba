"""Runs one case of exercise 18.2 against the reader of one channel and writes down what can be seen.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only. The channel is as small as a channel can be: it counts what it is told.

    ["reader", first, longest]   a reader whose waits are between these, in ms; its request has been sent
    ["answer"]                   the producer has sent something
    ["absent"]                an ErrorResponse: the partition is not there
    ["broken"]                   an ErrorResponse: the producer has failed
    ["over"]                     the wait is over: it asks again
    ["free", n]                  n buffers became free
    ["resume"]                   the producer, which stopped at a barrier, may go on
    ["news"]                     the connection can send, and asks for news

An event is [method] before an operation and [method, {group: {field: value}}] after it.
"""

from __future__ import annotations

from typing import Any

import refimpl.consumer  # noqa: F401 (so that a learner's own import of it costs nothing)
from course.grading.kinds import members, own, whole
from refimpl.config import Config
from refimpl.errors import PartitionNotFoundError, SluiceError
from refimpl.exchange.java_errors import JavaError
from refimpl.exchange.messages import AddCredit, PartitionRequest, ProducerId, ResultPartitionId, ResumeConsumption

__all__ = ["run_case"]

_PARTITION = ResultPartitionId(b"\x11" * 16, 3, ProducerId(b"\x22" * 16))
_RECEIVER = b"\xa0" * 16
_NOT_FOUND = JavaError("org.apache.flink.runtime.io.network.partition.PartitionNotFoundException", "not here")
_BROKEN = JavaError("org.apache.flink.runtime.io.network.partition.ProducerFailedException", "it is gone")


class _Channel:
    """What a reader needs of a channel, and how it was used."""

    receiver = _RECEIVER
    initial_credit = 2
    is_released = False

    def __init__(self) -> None:
        self.num_free = 0
        self.may_go_on = False
        self.num_asked = 0
        self.errors: list[SluiceError] = []

    def take_news(self) -> tuple[int, bool]:
        news = self.num_free, self.may_go_on
        self.num_free, self.may_go_on = 0, False
        self.num_asked += 1
        return news

    def on_error(self, error: SluiceError) -> None:
        self.errors.append(error)


class _Talk:
    """A reader, its channel, and what it was asked."""

    def __init__(self, part: Any, first: int, longest: int) -> None:
        self.channel = _Channel()
        self.request = PartitionRequest(_PARTITION, 7, 7, _RECEIVER, self.channel.initial_credit)
        config = Config(request_backoff_initial_ms=first, request_backoff_max_ms=longest)
        self.reader = part(self.channel, self.request, config, "a peer")

    def do(self, op: list[Any]) -> dict[str, Any]:
        answer: str | None = None
        match op:
            case ["answer"]:
                self.reader.has_answer = True
            case ["absent"]:
                answer = _truth(self.reader.on_error(_NOT_FOUND))
            case ["broken"]:
                answer = _truth(self.reader.on_error(_BROKEN))
            case ["over"]:
                answer = self._request(self.reader.ask_again())
            case ["free", n]:
                self.channel.num_free += n
            case ["resume"]:
                self.channel.may_go_on = True
            case ["news"]:
                answer = _messages(self.reader.news())
        return {**({} if answer is None else {"answer": {"gave": answer}}), **self.seen()}

    def seen(self) -> dict[str, Any]:
        reader, channel = self.reader, self.channel
        waits = _truth(reader.is_waiting)
        return {
            "reader": {"waits": waits, "wait": "none" if waits == "False" else _number(reader.wait_ms)},
            "channel": {"told": ", ".join(map(_told, channel.errors)) or "nothing", "asked": channel.num_asked},
        }

    def _request(self, given: Any) -> str:
        if given is self.request or given == self.request:
            return "the request"
        return "another request" if isinstance(given, PartitionRequest) else _what(given)


def _what(value: Any) -> str:
    return "nothing" if value is None else f"? {type(value).__name__[:30]}"


def _truth(value: Any) -> str:
    seen = own(value)
    return str(seen) if isinstance(seen, bool) else _what(value)


def _number(value: Any) -> str:
    seen = whole(own(value))
    return _what(value) if seen is None or isinstance(value, bool) else str(seen)[:30]


def _told(error: SluiceError) -> str:
    return "not found" if isinstance(error, PartitionNotFoundError) else "an error"


def _messages(value: Any) -> str:
    """The messages of a list, in their order."""
    listed = members(value)
    if listed is None:
        return _what(value)
    return ", ".join(map(_message, listed[:9])) or "no messages"


def _message(each: Any) -> str:
    whose = "" if getattr(each, "receiver", _RECEIVER) == _RECEIVER else " for another"
    match each:
        case AddCredit():
            return f"AddCredit {_number(each.credit)}{whose}"
        case ResumeConsumption():
            return f"ResumeConsumption{whose}"
    return _what(each)


_CALLS = {
    "answer": "the channel", "absent": "on_error", "broken": "on_error", "over": "ask_again",
    "free": "the channel", "resume": "the channel", "news": "news",
}  # fmt: skip


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    (_, *given), *rest = case
    first: list[Any] = ["__init__"]
    events.append(first)
    talk = _Talk(part, *given)
    first.append(talk.seen())
    for op in rest:
        event: list[Any] = [_CALLS[op[0]]]
        events.append(event)
        event.append(talk.do(op))
