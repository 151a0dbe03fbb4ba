"""Envelopes as JSON: every message comes back as it went, and whatever is none is refused by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.fencing import Envelope, FencingToken
from refimpl.cluster.messages import AnswerOffer, CancelTask, Registered, TaskReport, TaskState
from refimpl.drivers.cluster.rpc.codec import Codec
from refimpl.errors import LocalUsageError, RemoteProtocolError
from tests.support.rpc_rig import KINDS, envelope, envelopes

CODEC = Codec()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(st.data())
def test_every_message_comes_back_as_it_went(kind: type[Any], data: st.DataObject) -> None:
    sent = data.draw(envelopes(kind))
    assert CODEC.decode(CODEC.encode(sent)) == sent


def test_the_form_on_the_wire() -> None:
    sent = envelope("jm@h:1", "tm@h:2", TaskReport(ExecutionId("job", 1, 2), TaskState.FAILED, "why"))
    assert json.loads(CODEC.encode(sent)) == {
        "sender": "jm@h:1",
        "sender_token": {"epoch": 1, "nonce": "AAAAAAAAAAAAAAAAAAAAAA=="},
        "receiver": "tm@h:2",
        "receiver_token": {"epoch": 2, "nonce": "AAAAAAAAAAAAAAAAAAAAAA=="},
        "message": {
            "is": "TaskReport",
            "execution": {"job_id": "job", "vertex": 1, "subtask": 2, "attempt": 0, "epoch": 0, "generation": 0},
            "state": "FAILED",
            "why": "why",
            "missing": [],
        },
    }


def changed(*path: Any, to: Any) -> bytes:
    """The JSON of a message with another value at that place."""
    sent = envelope("jm@h:1", "tm@h:2", TaskReport(ExecutionId("job", 1, 2), TaskState.FAILED, "why"))
    whole = at = json.loads(CODEC.encode(sent))
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "Expecting value"),
        (b"\xff", "utf-8"),
        (b"null", "Envelope is None, and not dict"),
        (b"[" * 200_000, "this is no Envelope"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1, "a": 1}', "a key twice"),
        (b"1" * 10_000, "this is no Envelope"),
        (changed("more", to=1), "the field 'more'"),
        (changed("message", to={"is": "TaskReport"}), "the field 'execution'"),
        (changed("message", "is", to="Envelope"), "'Envelope', and there is no such kind"),
        (changed("message", "is", to=["TaskReport"]), "no such kind"),
        (changed("message", "state", to="failed"), "'failed', and that is no TaskState"),
        (changed("message", "state", to=[]), "no TaskState"),
        (changed("message", "execution", "vertex", to=True), "vertex is True, and not int"),
        (changed("message", "execution", "vertex", to=1.0), "vertex is 1.0, and not int"),
        (changed("message", "execution", "vertex", to=2**63), "more than 64 bits"),
        (changed("sender_token", "nonce", to="AAAA"), "16 bytes"),
        (changed("sender_token", "nonce", to="A*"), "no Base64"),
        (changed("sender_token", "epoch", to=-1), "epoch of 0 or more"),
        (changed("sender_token", to=None), "sender_token is None"),
    ],
)
def test_what_is_no_envelope_is_refused_and_named(data: bytes, why: str) -> None:
    with pytest.raises(RemoteProtocolError, match=why):
        CODEC.decode(data)


def test_both_ends_hold_to_the_length() -> None:
    sent = envelope("jm@h:1", "tm@h:2", TaskReport(ExecutionId("job", 1, 2), TaskState.FAILED, "w" * 1000))
    short, long = Codec(max_bytes=1000), Codec(max_bytes=10_000)
    with pytest.raises(LocalUsageError, match=r"a TaskReport of .* B cannot be sent, the most is 1000 B"):
        short.encode(sent)
    with pytest.raises(RemoteProtocolError, match="the most is 1000 B"):
        short.decode(long.encode(sent))


def test_what_is_not_as_it_is_declared_is_not_sent() -> None:
    bad: Any = AnswerOffer(accepted=["x"], rejected=())  # type: ignore[arg-type]
    with pytest.raises(LocalUsageError, match="is no tuple"):
        CODEC.encode(envelope("a", "b", bad))


class Colour(Enum):
    RED = 1


@dataclass(frozen=True)
class Other:
    """A message of somebody else, with every type that has a form."""

    number: float
    names: dict[str, tuple[int, str]]
    colour: Colour | None
    either: Registered | CancelTask
    data: bytes
    some: tuple[Colour, ...] = ()


def test_other_messages_need_only_be_named() -> None:
    codec = Codec(Other | Registered)
    message = Other(0.5, {"a": (1, "x")}, None, Registered(), b"\x00\xff", (Colour.RED,))
    sent = Envelope("a", FencingToken(1), "b", None, message)
    assert codec.decode(codec.encode(sent)) == sent
    with pytest.raises(RemoteProtocolError, match="no such kind"):
        CODEC.decode(codec.encode(sent))
    with pytest.raises(LocalUsageError, match="no kind of message here"):
        CODEC.encode(sent)
    with pytest.raises(LocalUsageError, match="no form in JSON"):
        codec.encode(Envelope("a", FencingToken(1), "b", None, Other(float("nan"), {}, None, Registered(), b"")))


@dataclass(frozen=True)
class Anything:
    """A message that nobody can read safely."""

    what: object


def test_a_field_that_may_be_anything_is_refused_when_the_codec_is_made() -> None:
    with pytest.raises(LocalUsageError, match="cannot have a field that is <class 'object'>"):
        Codec(Anything)
