"""`sluice cluster keys`: a pair that works, for nobody else to read, or none."""

from __future__ import annotations

import datetime
import getpass
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from course.cli import main
from course.spark.cluster_keys import ClusterKeysError, make_keys
from refimpl.drivers.transport.tls import ClusterKeys

ROOT = Path(__file__).parents[3]
DAY = datetime.timedelta(1)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def files_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def test_the_command_makes_a_pair_that_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "keys", str(folder)]) == 0
    ClusterKeys.in_folder(folder).load()
    said = capsys.readouterr().out
    until = datetime.datetime.now(datetime.UTC) + 365 * DAY
    assert f"valid until {until:%Y-%m-%d}" in said
    assert f"scp -pr {folder} MACHINE:" in said
    assert f"security=ClusterKeys.in_folder('{folder}')" in said


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_key_is_for_its_owner_alone_whatever_the_umask(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_keys(folder)
    finally:
        os.umask(before)
    assert (mode_of(folder), mode_of(folder / "cluster.key"), mode_of(folder / "cluster.crt")) == (0o700, 0o600, 0o644)
    assert sorted(files_in(folder)) == ["cluster.crt", "cluster.key"]


def test_the_certificate_is_what_it_should_be_and_names_nobody(folder: Path) -> None:
    make_keys(folder, 10)
    certificate = x509.load_pem_x509_certificate((folder / "cluster.crt").read_bytes())
    assert certificate.subject == certificate.issuer
    assert certificate.subject.rfc4514_string() == "CN=Sluice cluster"
    assert certificate.public_key().curve.name == "secp256r1"
    now = datetime.datetime.now(datetime.UTC)
    assert now - DAY < certificate.not_valid_before_utc < now - DAY / 25, "a clock may be behind by almost an hour"
    assert now + 9 * DAY < certificate.not_valid_after_utc < now + 11 * DAY
    extensions = {type(each.value): each.value for each in certificate.extensions}
    assert extensions[x509.BasicConstraints].ca is False
    assert x509.SubjectAlternativeName not in extensions
    raw = certificate.public_bytes(serialization.Encoding.DER) + b"".join(files_in(folder).values())
    for name in {socket.gethostname(), getpass.getuser()}:
        assert len(name) < 4 or name.encode() not in raw


def test_two_pairs_have_nothing_in_common(tmp_path: Path) -> None:
    pairs = []
    for name in ("a", "b"):
        make_keys(tmp_path / name)
        pairs.append(x509.load_pem_x509_certificate((tmp_path / name / "cluster.crt").read_bytes()))
    assert pairs[0].serial_number != pairs[1].serial_number
    assert pairs[0].public_key() != pairs[1].public_key()


@pytest.mark.parametrize("there", [("cluster.crt", "cluster.key"), ("cluster.crt",), ("cluster.key",)])
def test_keys_that_are_there_stay_unless_force_is_used(
    folder: Path, there: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir(0o700)
    for name in there:
        (folder / name).write_bytes(b"old")
    assert main(["cluster", "keys", str(folder)]) == 2
    assert re.search(f"{there[0]}.* already, and .*--force", capsys.readouterr().err)
    assert files_in(folder) == dict.fromkeys(there, b"old")
    assert main(["cluster", "keys", str(folder), "--force"]) == 0
    ClusterKeys.in_folder(folder).load()


BAD_DAYS = ("0", "-1", "x", "1.5", "36501", "99999999999999")


@pytest.mark.parametrize("words", ["", "nonsense", "keys", *(f"keys d --days {days}" for days in BAD_DAYS)])
def test_wrong_words_are_wrong_use(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["cluster", *words.split()])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "usage: sluice cluster" in said
    if "--days" in words:
        assert "is no whole number from 1 to 36500" in said
    assert not list(tmp_path.iterdir())


def test_a_hundred_years_are_possible(folder: Path) -> None:
    make_keys(folder, 36_500)
    ClusterKeys.in_folder(folder).load()


def test_help_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["cluster", "keys", "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("usage: sluice cluster keys", "DIR", "--days N", "--force", "example:"))


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_open_to_others_is_not_used_nor_changed(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(ClusterKeysError, match=rf"open to others on this machine \(mode {mode:o}\); `chmod 700` it"):
        make_keys(folder, force=True)
    assert mode_of(folder) == mode
    assert not files_in(folder)


def test_a_file_is_no_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_text("x")
    assert main(["cluster", "keys", str(folder)]) == 2
    assert "is a file; name a folder" in capsys.readouterr().err
    assert main(["cluster", "keys", str(folder / "below")]) == 1
    assert capsys.readouterr().err == f"No keys were made: {folder}/below cannot be written: Not a directory\n"


WITHOUT_SPACE = """
import resource, sys
from course.cli import main
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main(["cluster", "keys", *sys.argv[2:]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("there", "limit"), [
    ("no folder", 0),
    ("an empty folder", 100),  # less than the key
    ("no folder", 300),  # room for the key, and not for its certificate
    ("keys", 300),
])  # fmt: skip
def test_a_full_disk_leaves_what_was_there(folder: Path, there: str, limit: int) -> None:
    if there != "no folder":
        folder.mkdir(0o700)
    if there == "keys":
        make_keys(folder, force=True)
    before = files_in(folder) if folder.exists() else None
    command = [sys.executable, "-B", "-c", WITHOUT_SPACE, str(limit), str(folder), "--force"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr == f"No keys were made: {folder} cannot be written: File too large\n"
    assert (files_in(folder) if folder.exists() else None) == before


def test_a_place_that_cannot_be_taken_leaves_no_half(folder: Path) -> None:
    (folder / "cluster.crt").mkdir(parents=True)
    folder.chmod(0o700)
    with pytest.raises(OSError):  # noqa: PT011 - its kind differs by system
        make_keys(folder, force=True)
    assert [file.name for file in folder.iterdir()] == ["cluster.crt"]


def test_what_a_killed_run_left_does_not_matter(folder: Path) -> None:
    folder.mkdir(0o700)
    for name in ("cluster.key.new", "cluster.crt.new"):
        (folder / name).write_bytes(b"half")
        (folder / name).chmod(0o644)
    make_keys(folder)
    assert sorted(files_in(folder)) == ["cluster.crt", "cluster.key"]
    assert mode_of(folder / "cluster.key") == 0o600


def test_nobody_is_led_elsewhere_by_a_link(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(0o700)
    (tmp_path / "elsewhere").write_bytes(b"mine")
    for name in ("cluster.key.new", "cluster.key"):
        (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ClusterKeysError, match=r"has cluster\.key already"):
        make_keys(folder)
    make_keys(folder, force=True)
    assert (tmp_path / "elsewhere").read_bytes() == b"mine"
    assert not (folder / "cluster.key").is_symlink()
