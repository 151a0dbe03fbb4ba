"""Options are checked when they are made, and know their names in Flink."""

from __future__ import annotations

import pytest

from refimpl.config import Config, FlinkVersion, option_table
from refimpl.errors import ConfigError, LocalUsageError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment_size_bytes", 0),
        ("segment_size_bytes", -1),
        ("segment_size_bytes", True),
        ("segment_size_bytes", 32.5),
        ("segment_size_bytes", "32768"),
        ("segment_size_bytes", None),
        ("segment_size_bytes", 2**31),
        ("num_buffers", 0),
        ("buffers_per_channel", 0),
        ("floating_buffers_per_gate", -1),
        ("max_buffers_per_channel", 0),
        ("max_overdraft_buffers", -1),
        ("buffer_timeout_ms", -2),
        ("request_backoff_initial_ms", -1),
        ("request_backoff_max_ms", -1),
        ("request_backoff_max_ms", 99),  # less than the first wait
        ("connect_retries", -1),
        ("connect_timeout_ms", 0),
        ("max_channels_per_connection", 0),
        ("first_frame_timeout_ms", 0),
        ("max_frame_bytes", 1_023),
        ("max_event_bytes", 1_023),
        ("spill_threshold_bytes", 0),
        ("source_batch", 0),
        ("max_parallelism", 0),
        ("max_parallelism", 32_769),
        ("max_parallelism", True),
        ("max_parallelism", "128"),
        ("checkpoint_interval_ms", -1),
        ("checkpointing_mode", "exactly-once"),
        ("checkpointing_mode", True),
    ],
)
def test_a_value_that_cannot_work_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name) as caught:
        Config(**{name: value})
    assert (caught.value.option, caught.value.value) == (name, value)
    assert repr(value) in str(caught.value)
    assert isinstance(caught.value, LocalUsageError | ValueError)


def test_in_2x_a_channel_needs_a_second_buffer_or_its_open_one_stops_the_task_for_good() -> None:
    assert Config(max_buffers_per_channel=1).max_buffers_per_channel == 1
    assert Config(max_buffers_per_channel=2, flink_version=FlinkVersion.V2_2).max_buffers_per_channel == 2
    with pytest.raises(ConfigError, match=r"max_buffers_per_channel=1 cannot work: .* at least 2"):
        Config(max_buffers_per_channel=1, flink_version=FlinkVersion.V2_2)


@pytest.mark.parametrize(
    "least", [{"segment_size_bytes": 1}, {"buffer_timeout_ms": -1}, {"buffer_timeout_ms": 0}, {"max_parallelism": 1}]
)
def test_the_least_value_of_an_option_works(least: dict[str, int]) -> None:
    config = Config(**least)
    assert {name: getattr(config, name) for name in least} == least


def test_the_defaults_are_flinks() -> None:
    config = Config()
    assert config.segment_size_bytes == 32 * 1024
    assert config.num_buffers == 2048
    assert (config.buffers_per_channel, config.floating_buffers_per_gate) == (2, 8)
    assert config.max_buffers_per_channel == 10
    assert config.buffer_timeout_ms == 100
    assert config.credit_based is True
    assert (config.request_backoff_initial_ms, config.request_backoff_max_ms) == (100, 10_000)
    assert config.spill_threshold_bytes == 5 * 1024 * 1024
    assert config.flink_version is FlinkVersion.V1_11


def test_every_option_has_a_row_with_its_flink_key_and_a_meaning() -> None:
    rows = {row["name"]: row for row in option_table()}
    assert set(rows) == set(Config.__slots__)
    assert rows["segment_size_bytes"]["flink_key"] == "taskmanager.memory.segment-size"
    assert rows["segment_size_bytes"]["unit"] == "bytes"
    assert rows["credit_based"]["flink_key"] == "taskmanager.network.credit-model"
    assert all(row["meaning"] and row["flink_key"] for row in rows.values())


def test_the_spill_directory_defaults_to_the_systems(tmp_path: object) -> None:
    assert Config(spill_directory=str(tmp_path)).spill_path == str(tmp_path)
    assert Config().spill_path


def test_a_full_segment_fits_a_frame_however_large_it_is() -> None:
    assert Config().frame_limit_bytes == Config().max_frame_bytes
    assert Config(segment_size_bytes=2**30).frame_limit_bytes > 2**30


def test_a_negative_seed_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="seed=-1"):
        Config(seed=-1)
