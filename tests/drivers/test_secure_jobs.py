"""Whole jobs over mutual TLS: the same result, and strangers change nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Protocol, Self

import pytest

from refimpl.config import Config
from refimpl.drivers import ProcessRun, ThreadedRun
from refimpl.drivers.transport import ClusterKeys, connect
from refimpl.errors import ConfigError, RemoteTransportError
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, LONG, TupleType
from refimpl.task import IterableReader, Operator
from tests.support.stream_rig import within

TIMEOUT_S = 60.0  # only so that a hang fails
NUM_RECORDS = 2_000

PAIR = TupleType(LONG, BYTES)


class Run(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(self, *_exc: object) -> None: ...

    def start(self) -> Self: ...

    def join(self, timeout_s: float) -> bool: ...


def payload(number: int) -> bytes:
    return bytes([number % 251]) * (number * 37 % 900 if number % 500 else 100_000)


def job(results: list[object], on_value: Callable[[object], object] = lambda value: value) -> StreamEnvironment:
    """2 sources → by key → 4 maps → sink, with records that span buffers."""
    environment = StreamEnvironment(Config(segment_size_bytes=1024, num_buffers=100))

    def reader(subtask: int, width: int) -> IterableReader:
        return IterableReader([(n, payload(n)) for n in range(subtask, NUM_RECORDS, width)])

    source = environment.source(reader, type=PAIR, parallelism=2).key_by(lambda value: value[0], LONG)
    source.transform("keyed", Operator, PAIR).set_parallelism(4).map(on_value, type=PAIR).sink(results.append)
    return environment


@pytest.mark.slow
@pytest.mark.parametrize("make", [ThreadedRun, ProcessRun])
def test_a_job_over_tls_gives_the_same_result(make: Callable[..., Run], keys: ClusterKeys) -> None:
    results: list[object] = []
    with make(job(results), num_task_managers=2, security=keys) as run:
        assert run.start().join(TIMEOUT_S)
    assert sorted(results) == [(n, payload(n)) for n in range(NUM_RECORDS)]


def test_strangers_get_nowhere_and_the_log_says_who(
    keys: ClusterKeys, other_keys: ClusterKeys, caplog: pytest.LogCaptureFixture
) -> None:
    results: list[object] = []
    with ThreadedRun(job(results), num_task_managers=2, security=keys) as run:
        host, port = run.task_managers[0].connections.address
        run.start()
        with socket.create_connection((host, port), TIMEOUT_S) as plain:
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while plain.recv(4096):
                pass
        with pytest.raises(OSError, match="certificate"):
            within(connect(host, port, other_keys, TIMEOUT_S).read, 1)
        assert run.join(TIMEOUT_S)
    assert sorted(results) == [(n, payload(n)) for n in range(NUM_RECORDS)]
    refusals = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert len(refusals) == 2, refusals


@pytest.mark.parametrize("make", [pytest.param(ProcessRun, marks=pytest.mark.slow)])
def test_an_open_address_needs_keys(make: Callable[..., Run]) -> None:
    with pytest.raises(ConfigError, match="sluice cluster keys"):
        make(job([]), num_task_managers=2, host="0.0.0.0")


def test_task_managers_with_different_keys_do_not_speak(keys: ClusterKeys, other_keys: ClusterKeys) -> None:
    results: list[object] = []
    run = ThreadedRun(job(results), num_task_managers=2, security=keys)
    run.task_managers[1].connections._security = other_keys  # for the connections it makes; it listens with the first
    with run, pytest.raises(RemoteTransportError, match="tm-1 reads tm-0 at 127"):
        run.start().join(TIMEOUT_S)
    assert [deployment.pool.num_free for deployment in run.deployments] == [100, 100]
