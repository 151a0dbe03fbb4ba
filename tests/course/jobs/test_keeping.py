"""`sluice run --unaligned-after`: barriers of a job wait so long, and then overtake; in one sentence what cannot be."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from course.cli import main
from course.jobs.job_files import JobError
from course.jobs.keeping import check, keeping_of
from refimpl.config import CheckpointingMode, Config, FlinkVersion
from refimpl.job import StreamEnvironment


def asked(folder: Path | None, wait: str | None) -> argparse.Namespace:
    return argparse.Namespace(
        checkpoint=folder, every=None, unaligned_after=wait, restore=None, job="flow.py", trace=None, on="threads"
    )


def test_the_job_is_told_how_long_its_barriers_wait(tmp_path: Path) -> None:
    environment = StreamEnvironment()
    assert keeping_of(asked(tmp_path / "kept", "200ms"), environment) is not None
    config = environment.config
    assert (config.unaligned, config.aligned_checkpoint_timeout_ms) == (True, 200)
    assert config.flink_version is FlinkVersion.V2_2


def test_without_the_option_barriers_are_as_the_job_says(tmp_path: Path) -> None:
    environment = StreamEnvironment()
    keeping_of(asked(tmp_path / "kept", None), environment)
    assert (environment.config.unaligned, environment.config.flink_version) == (False, FlinkVersion.V1_11)


def test_a_job_where_nobody_waits_has_no_use_for_it(tmp_path: Path) -> None:
    environment = StreamEnvironment(Config(checkpointing_mode=CheckpointingMode.AT_LEAST_ONCE))
    with pytest.raises(JobError, match="--unaligned-after does not go with this job"):
        keeping_of(asked(tmp_path / "kept", "1s"), environment)


@pytest.mark.parametrize(
    ("folder", "wait", "said"),
    [
        (None, "1s", "--unaligned-after is about checkpoints"),
        (Path("kept"), "soon", "--unaligned-after 'soon' is no time"),
        (Path("kept"), "0s", "--unaligned-after '0s' cannot work"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_loaded(folder: Path | None, wait: str, said: str) -> None:
    with pytest.raises(JobError, match=said):
        check(asked(folder, wait))


@pytest.mark.parametrize("driver", ["threads", "aio", "processes"])
def test_a_job_of_a_file_runs_so_on_every_driver(
    driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    monkeypatch.chdir(tmp_path)
    words = ["--on", driver, "--checkpoint", "kept", "--every", "5ms", "--unaligned-after", "1ms"]
    assert main(["run", "flow.py", *words]) == 0
    said = capsys.readouterr()
    assert sorted(map(int, said.out.split())) == list(range(2_000))
    assert "taken" in said.err


FLOW = """
from refimpl.config import Config
from refimpl.job import StreamEnvironment

def job(sink):
    environment = StreamEnvironment(Config(num_buffers=256, source_batch=8, segment_size_bytes=256), parallelism=2)
    numbers = environment.from_collection(range(2_000), "numbers").rebalance().map(lambda value: value, "same")
    numbers.rebalance().sink(sink, exactly_once=True)
    return environment
"""
