"""Processes of a cluster that speak over real connections, in one process, and every kind of message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args, get_type_hints

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from refimpl.cluster.fencing import Envelope, FencingToken
from refimpl.cluster.messages import Message
from refimpl.drivers.cluster.rpc.inbox import ConnectionLost
from refimpl.drivers.cluster.rpc.secret import ClusterSecret
from refimpl.drivers.cluster.rpc.service import RpcService

LONG_S = 60.0
KINDS = get_args(Message)
SECRET = ClusterSecret(bytes(range(32)))

_INT = st.integers(-(2**63), 2**63 - 1)
_TOKENS = st.builds(FencingToken, st.integers(0, 2**63 - 1), st.binary(min_size=16, max_size=16))
st.register_type_strategy(FencingToken, _TOKENS)
st.register_type_strategy(int, _INT)
st.register_type_strategy(str, st.text(max_size=8))


def messages(kind: type[Any]) -> SearchStrategy[Any]:
    """Every value that a message of this kind can be."""
    return st.builds(kind, **{name: st.from_type(hint) for name, hint in get_type_hints(kind).items()})


def envelopes(kind: type[Any]) -> SearchStrategy[Envelope[Any]]:
    words = st.text(max_size=8)
    return st.builds(Envelope, words, _TOKENS, words, st.none() | _TOKENS, messages(kind))


def envelope(sender: str, receiver: str, message: Message) -> Envelope[Any]:
    return Envelope(sender, FencingToken(1), receiver, FencingToken(2), message)


@contextmanager
def services(number: int, **options: Any) -> Iterator[list[RpcService]]:
    """So many processes that know one secret."""
    made: list[RpcService] = []
    try:
        made += [RpcService(SECRET, **options) for _ in range(number)]
        yield made
    finally:
        for each in made:
            each.close(0)


def took(service: RpcService, number: int) -> list[Envelope[Any] | ConnectionLost]:
    """The next that come, so many or a few more."""
    found: list[Envelope[Any] | ConnectionLost] = []
    while len(found) < number:
        new = service.poll(LONG_S)
        assert new, f"only {found} in {LONG_S} s"
        found += new
    return found
