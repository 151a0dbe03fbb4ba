"""The manifest: canonical text, sealed, and read by those who know its format."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from refimpl.errors import CorruptFileError, LocalUsageError
from refimpl.state import CheckpointKind, Manifest, OperatorRecord, StateFile, StateRecord

FILE = StateFile("chk-7/count-0-0.state", 120, "ab" * 32, {"split/source/offsets": 3})
OPERATOR = OperatorRecord(
    "count", "WindowOperator", 128, 2, (StateRecord("w", "keyed", "any, time window, long"),), (FILE, None)
)
MANIFEST = Manifest("job ü", "run-1", 2, 7, CheckpointKind.SAVEPOINT, 1_000, 1_250, (OPERATOR,), fsync=False)


def sealed(**changes: Any) -> bytes:
    values = {**json.loads(MANIFEST.to_bytes().splitlines()[0]), **changes}
    body = json.dumps(values).encode() + b"\n"
    return body + sha256(body).hexdigest().encode() + b"\n"


def test_what_was_written_can_be_read() -> None:
    assert Manifest.from_bytes(MANIFEST.to_bytes(), "m") == MANIFEST
    assert MANIFEST.files() == {FILE.key: FILE}


def test_the_text_is_canonical_and_its_last_line_is_the_hash_of_what_is_above() -> None:
    text, seal, end = MANIFEST.to_bytes().split(b"\n")
    values = json.loads(text)
    assert text.decode() == json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert (seal.decode(), end) == (sha256(text + b"\n").hexdigest(), b"")
    assert (values["format"], values["job"], values["kind"], values["fsync"]) == (
        "sluice-checkpoint/1", "job ü", "savepoint", False,
    )  # fmt: skip


def test_the_engine_is_the_version_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert MANIFEST.engine == f"{project['name']} {project['version']}"


def test_every_flipped_bit_and_every_missing_end_is_noticed() -> None:
    raw = MANIFEST.to_bytes()
    for position in range(len(raw)):
        for bit in range(8):
            harmed = bytearray(raw)
            harmed[position] ^= 1 << bit
            with pytest.raises(CorruptFileError, match=r"^m: "):
                Manifest.from_bytes(bytes(harmed), "m")
        with pytest.raises(CorruptFileError, match=r"^m: "):
            Manifest.from_bytes(raw[:position], "m")
    with pytest.raises(CorruptFileError):
        Manifest.from_bytes(raw + b"\n", "m")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("sluice-checkpoint/2", "is of format sluice-checkpoint/2, and this engine reads sluice-checkpoint/1"),
        ("sluice-checkpoint/0", "is of format sluice-checkpoint/0"),
        ("parquet", "'parquet' is no format"),
        (None, "None is no format"),
    ],
)
def test_another_format_is_refused_by_name(found: object, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        Manifest.from_bytes(sealed(format=found), "m")


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": -1},
        {"epoch": True},
        {"epoch": 1.5},
        {"kind": "snapshot"},
        {"operators": {}},
        {"operators": [1]},
        {"guess": 1},
        {"operators": [{"uid": "a"}]},
        {"job": None},
    ],
)
def test_what_a_manifest_cannot_say_is_refused_though_its_hash_is_right(changes: dict[str, Any]) -> None:
    assert Manifest.from_bytes(sealed(), "m") == MANIFEST
    with pytest.raises(CorruptFileError, match="the manifest does not say what it should"):
        Manifest.from_bytes(sealed(**changes), "m")


@pytest.mark.parametrize("key", ["../other/secret", "/etc/passwd", "chk-7//a", ""])
def test_no_file_of_a_manifest_leads_out_of_the_store(key: str) -> None:
    operator = replace(OPERATOR, subtasks=(replace(FILE, key=key), None))
    with pytest.raises(CorruptFileError, match="the manifest does not say what it should"):
        Manifest.from_bytes(replace(MANIFEST, operators=(operator,)).to_bytes(), "m")


def test_a_uid_is_of_one_operator() -> None:
    with pytest.raises(LocalUsageError, match="several operators are called 'count'; give each a uid"):
        replace(MANIFEST, operators=(OPERATOR, OPERATOR)).to_bytes()
