"""A sample of hostile inputs for the wire between the processes of a cluster; `make fuzz` plays 100 000."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from refimpl.drivers.cluster.rpc import sealed_stream
from tests.fuzz.control_wire import control_fault, play_control

NUM_INPUTS = 3_000


def test_whatever_comes_nothing_breaks() -> None:
    for number in range(NUM_INPUTS):
        fault = control_fault("test", number, is_weighed=number % 16 == 0)
        assert fault is None, f"{fault.story}\nto see it again: python -m tests.fuzz --replay control:test:{number}"


def test_inputs_come_to_every_end() -> None:
    """A generator whose inputs are all refused at once would find nothing, and pass."""
    ends = Counter(re.sub("[0-9]+", "N", play_control("ends", number)[1]) for number in range(1_500))
    for end in (
        "let in",
        "fuzz does not know the secret of this cluster",
        "fuzz does not speak as a process of a cluster does",
        "fuzz has closed the connection without a word",
        "all taken in",
        "frame N is not what its hash says",
        "an envelope",
    ):
        assert ends[end] > 1, ends
    assert len(ends) > 100, ends


def test_an_input_is_the_same_each_time() -> None:
    for number in range(30):
        assert play_control("same", number) == play_control("same", number)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("the number of a frame", lambda key, _number, body: sealed_stream.hmac.digest(key, body, "sha256")),
        ("the body of a frame", lambda key, number, _body: sealed_stream.hmac.digest(key, bytes([number]), "sha256")),
    ],
)
def test_what_a_hash_leaves_out_is_found(name: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_stream, "_frame_hash", broken)
    assert any(control_fault("mutant", number) for number in range(1, 900, 3)), name
