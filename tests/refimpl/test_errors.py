"""Errors say what, where, expected, got and what to do; numbers travel as attributes."""

from __future__ import annotations

import pytest

from refimpl.errors import (
    ConfigError,
    InsufficientBuffersError,
    InsufficientSlotsError,
    LocalUsageError,
    PoolDestroyedError,
    RemoteProtocolError,
    SluiceError,
    SpillError,
    UserCodeError,
)


def test_too_few_buffers_tells_who_what_and_what_to_do() -> None:
    """The text begins as Flink's does."""
    error = InsufficientBuffersError("map-1", 12, 7, 64, 32_768)
    assert str(error) == (
        "Insufficient number of network buffers: required 12, but only 7 available. map-1 needs 12 buffers of "
        "32768 B, 7 of 64 are promised to nobody; lower the parallelism or raise num_buffers"
    )
    assert (error.owner, error.num_required, error.num_free) == ("map-1", 12, 7)
    assert (error.num_total, error.segment_size_bytes) == (64, 32_768)


def test_too_few_slots_tells_how_many_and_what_to_do() -> None:
    error = InsufficientSlotsError(4, 2)
    assert "each of its 4 TaskManagers at one time, and the cluster has 2; give it more cores" in str(error)
    assert (error.num_required, error.num_slots) == (4, 2)


def test_an_exception_in_user_code_names_operator_subtask_and_record() -> None:
    error = UserCodeError("parse", 3, {"origin": "JFK"}, ValueError("no number"))
    assert str(error) == "parse, subtask 3, raised ValueError: no number while processing {'origin': 'JFK'}"
    assert (error.operator, error.subtask, error.record) == ("parse", 3, {"origin": "JFK"})


def test_a_long_record_is_shortened_in_the_message_and_whole_in_the_attribute() -> None:
    record = "x" * 10_000
    error = UserCodeError("parse", 0, record, ValueError("no"))
    assert len(str(error)) < 400
    assert "10002 characters" in str(error)
    assert error.record == record


def test_a_failed_spill_tells_the_size_and_the_directory() -> None:
    error = SpillError(6_000_000, "/full", "has only 12 B free")
    assert str(error) == (
        "a record of 6000000 B must be spilled to disk, but /full has only 12 B free; "
        "free some space or set spill_directory to a larger disk"
    )
    assert (error.record_bytes, error.directory) == (6_000_000, "/full")


@pytest.mark.parametrize(
    ("kind", "parent"),
    [
        (LocalUsageError, SluiceError),
        (RemoteProtocolError, SluiceError),
        (ConfigError, LocalUsageError),
        (ConfigError, ValueError),
        (PoolDestroyedError, LocalUsageError),
        (InsufficientBuffersError, SluiceError),
        (SpillError, SluiceError),
        (UserCodeError, SluiceError),
    ],
)
def test_errors_are_sorted_by_who_is_at_fault(kind: type, parent: type) -> None:
    assert issubclass(kind, parent)
    assert not issubclass(kind, AssertionError)
