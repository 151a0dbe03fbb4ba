"""`sluice checkpoints`: what is there, what it consists of, what is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from course.cli import main
from refimpl.drivers.file_store import FileStore
from tests.support.checkpoint_rig import SmallJob, write_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two checkpoints and a savepoint of one job, and one that never got a manifest."""
    job = SmallJob(FileStore(tmp_path, fsync=False), 1)
    for _ in range(2):
        job.checkpoint(retained=9)
    job.leader.complete(*write_checkpoint(job.store, 9, 3, 1, folder="sp-friday/"))
    write_checkpoint(job.store, 12, 4, 1)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main(["checkpoints", *map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


def told_json(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any]:
    status, out, _ = told(capsys, *words, "--json")
    return status, json.loads(out)


@pytest.mark.parametrize("where", ["", "job"])
def test_a_line_for_each(folder: Path, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = told(capsys, "list", folder / where)
    head, *rows = out.splitlines()
    assert (status, head.split()) == (0, ["id", "kind", "size", "duration", "job", "operators"])
    assert [(row.split()[:2], row.split()[-4:]) for row in rows] == [
        (["1", "checkpoint"], ["5", "ms", "job", "count"]),
        (["2", "checkpoint"], ["5", "ms", "job", "count"]),
        (["3", "savepoint"], ["5", "ms", "job", "count"]),
    ]
    status, values = told_json(capsys, "list", folder / where)
    assert [each["id"] for each in values["checkpoints"]] == [1, 2, 3]
    assert values["checkpoints"][0]["bytes"] == sum(
        path.stat().st_size for path in (folder / "job/chk-1").glob("*.state")
    )


def test_one_is_shown_readable(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = told(capsys, "show", folder)
    assert (status, out.splitlines()[0]) == (0, "savepoint 3 of job job")
    status, out, _ = told(capsys, "show", folder, "--id", 2)
    assert out.splitlines()[0] == "checkpoint 2 of job job"
    assert "operator count (Count), 2 of at most 8 subtasks" in out
    assert "  state seen: keyed, written as any, long, long" in out
    assert "  subtask 1: chk-2/v-1-1.state, " in out
    status, values = told_json(capsys, "show", folder / "job/chk-1")
    assert (values["format"], values["checkpoint_id"]) == ("sluice-checkpoint/1", 1)


def test_a_number_that_is_not_there_is_told_with_those_that_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "show", folder, "--id", 7) == (1, "", "there is no checkpoint 7; there are: 1, 2, 3\n")


def test_what_is_sound_is_said_to_be(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "verify", folder) == (0, "3 checkpoints with 6 state files: all as they were written\n", "")
    assert told_json(capsys, "verify", folder / "job/chk-2") == (
        0,
        {"checkpoints": 1, "files": 2, "channel_state": 0, "problems": []},
    )


def test_each_damaged_file_is_named_with_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = folder / "job"
    (job / "chk-1/_metadata").write_bytes((job / "chk-1/_metadata").read_bytes()[:-1])
    (job / "chk-2/v-0-1.state").unlink()
    raw = bytearray((job / "sp-friday/v-0-1.state").read_bytes())
    raw[40] ^= 4
    (job / "sp-friday/v-0-1.state").write_bytes(raw)
    status, out, _ = told(capsys, "verify", folder)
    assert (status, out.splitlines()) == (
        1,
        [
            f"{job}/chk-1/_metadata: manifest: checksum, or its end is missing",
            f"{job}/chk-2/v-0-1.state: missing, there is no file {job}/chk-2/v-0-1.state",
            f"{job}/sp-friday/v-0-1.state: section 'seen' of operator 'count': checksum",
        ],
    )
    status, values = told_json(capsys, "verify", folder)
    assert (status, len(values["problems"]), values["problems"][0]["why"][:9]) == (1, 3, "manifest:")
    status, out, _ = told(capsys, "list", folder)
    assert (status, out.splitlines()[1]) == (
        0, " chk-1  damaged: chk-1/_metadata: manifest: checksum, or its end is missing",
    )  # fmt: skip


def test_a_folder_that_is_none_or_has_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "unfinished/chk-3").mkdir(parents=True)
    (tmp_path / "unfinished/chk-3/v-0-0.state").write_text("x")
    for action in ("list", "show", "verify"):
        assert told(capsys, action, tmp_path / "none") == (2, "", f"{tmp_path}/none is not there\n")
        assert told(capsys, action, tmp_path / "file") == (2, "", f"{tmp_path}/file is no folder\n")
        status, out, err = told(capsys, action, tmp_path / "empty")
        assert (status, out) == (1, "")
        assert err.startswith(f"there is no checkpoint in {tmp_path}/empty: no chk-N/_metadata")
        assert told(capsys, action, tmp_path / "unfinished")[2].endswith(
            "; chk-3 never got a manifest, so none of them is a checkpoint\n"
        )
    status, out, _ = told(capsys, "verify", tmp_path / "unfinished/chk-3")
    assert (status, out) == (
        1,
        f"{tmp_path}/unfinished/chk-3/_metadata: missing, there is no file {tmp_path}/unfinished/chk-3/_metadata\n",
    )


def test_help_names_the_actions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["checkpoints", "--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(word in out for word in ("list", "show", "verify", "example: sluice checkpoints verify DIR"))
