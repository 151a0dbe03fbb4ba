"""Processes of a cluster that speak: what is sent arrives, in order, and whose way has ended is told so."""

from __future__ import annotations

import socket
import threading

import pytest

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.messages import CancelTask, Registered
from refimpl.drivers.cluster.rpc.address import parse_place
from refimpl.drivers.cluster.rpc.inbox import ConnectionLost
from refimpl.drivers.cluster.rpc.secret import ClusterSecret
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.drivers.transport.tls import ClusterKeys
from refimpl.errors import ConfigError, LocalUsageError
from tests.support.rpc_rig import SECRET, envelope, services, took


def numbered(number: int) -> CancelTask:
    return CancelTask(ExecutionId("job", 0, number))


def test_what_is_sent_arrives_in_order_and_is_answered() -> None:
    with services(2) as (one, other):
        sent = [envelope(one.address("jm"), other.address("tm"), numbered(each)) for each in range(100)]
        for each in sent:
            one.send(each)
        assert took(other, 100) == sent
        back = envelope(other.address("tm"), one.address("jm"), Registered())
        other.send(back)
        assert took(one, 1) == [back]


def test_components_of_one_process_speak_too() -> None:
    with services(1) as (one,):
        sent = envelope(one.address("jm"), one.address("rm"), Registered())
        one.send(sent)
        assert took(one, 1) == [sent]


def test_who_is_connected_to_is_told_of_the_end_after_all_that_came_before() -> None:
    with services(2) as (one, other):
        sent = envelope(one.address("jm"), other.address("tm"), Registered())
        one.send(sent)
        one.close()
        first, second = took(other, 2)
        assert first == sent
        assert isinstance(second, ConnectionLost)
        assert second.place == one.place


def test_who_connects_is_told_of_the_end() -> None:
    with services(2) as (one, other):
        one.send(envelope(one.address("jm"), other.address("tm"), Registered()))
        took(other, 1)
        other.close()
        (lost,) = took(one, 1)
        assert isinstance(lost, ConnectionLost)
        assert lost.place == other.place


def test_where_nobody_listens_is_told_and_connected_with_when_somebody_does() -> None:
    with services(2) as (one, gone):
        host, port = parse_place(gone.place)
        gone.close()
        one.send(envelope(one.address("jm"), gone.address("tm"), numbered(1)))
        (lost,) = took(one, 1)
        assert isinstance(lost, ConnectionLost)
        assert lost.place == gone.place
        again = RpcService(SECRET, host, port)
        try:
            sent = envelope(one.address("jm"), again.address("tm"), numbered(2))
            one.send(sent)
            assert took(again, 1) == [sent]
        finally:
            again.close()


def test_who_knows_another_secret_is_not_heard_and_hears_nothing() -> None:
    stranger = RpcService(ClusterSecret.new())
    with services(2) as (one, other):
        stranger.send(envelope(stranger.address("jm"), one.address("tm"), Registered()))
        (lost,) = took(stranger, 1)
        assert isinstance(lost, ConnectionLost)
        stranger.close()
        sent = envelope(other.address("jm"), one.address("tm"), Registered())
        other.send(sent)
        assert took(one, 1) == [sent]


def test_a_wake_lets_a_poll_return() -> None:
    with services(1) as (one,):
        one.wake()
        assert one.poll(None) == []
        waking = threading.Thread(target=one.wake)
        waking.start()
        assert one.poll(None) == []
        waking.join()


def test_what_cannot_be_sent_is_refused_at_once() -> None:
    with services(1) as (one,), pytest.raises(LocalUsageError, match="name@host:port"):
        one.send(envelope(one.address("jm"), "nowhere", Registered()))


def test_beyond_this_machine_keys_are_required(keys: ClusterKeys) -> None:
    with pytest.raises(ConfigError, match="cluster keys"):
        RpcService(SECRET, "0.0.0.0")


def test_with_keys_envelopes_cross_over_tls_and_plain_tcp_gets_nowhere(keys: ClusterKeys) -> None:
    with services(2, security=keys) as (one, other):
        plain = RpcService(SECRET)
        plain.send(envelope(plain.address("jm"), one.address("tm"), Registered()))
        assert isinstance(took(plain, 1)[0], ConnectionLost)
        plain.close()
        sent = envelope(other.address("jm"), one.address("tm"), Registered())
        other.send(sent)
        assert took(one, 1) == [sent]


def test_a_silent_stranger_keeps_nobody_out() -> None:
    with services(2) as (one, other):
        strangers = [socket.create_connection(parse_place(one.place)) for _ in range(100)]
        try:
            sent = envelope(other.address("jm"), one.address("tm"), Registered())
            other.send(sent)
            assert took(one, 1) == [sent]
        finally:
            for each in strangers:
                each.close()
