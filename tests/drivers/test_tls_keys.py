"""The two files that make a process one of the cluster, and everything that may be wrong with them."""

from __future__ import annotations

import os
import pickle
import re
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from refimpl.drivers.transport.refusals import HandshakeError, Refusal, explain_refusal
from refimpl.drivers.transport.streams import connect, listen
from refimpl.drivers.transport.tls import ClusterKeys, PemPair
from refimpl.errors import ConfigError
from tests.support.stream_rig import (
    TIMEOUT_S,
    connected,
    pem_of,
    raw_context,
    within,
    write_keys,
    write_pair,
)


@pytest.mark.parametrize(("first_day", "last_day", "said"), [
    (-3, -1, "it has expired"),
    (1, 3, "it is not valid yet; is the clock right?"),
])  # fmt: skip
def test_a_certificate_out_of_its_time(tmp_path: Path, first_day: int, last_day: int, said: str) -> None:
    keys = write_keys(tmp_path, first_day, last_day)
    for call in (keys.load, lambda: listen(security=keys), lambda: connect("127.0.0.1", 9, keys, TIMEOUT_S)):
        with pytest.raises(ConfigError, match=re.escape(f"{said}; `sluice cluster keys DIR`")) as refused:
            within(call)
        assert (refused.value.option, refused.value.value) == ("certificate", str(keys.certificate))


def test_a_certificate_that_expires_while_it_is_in_use(tmp_path: Path) -> None:
    expired = write_keys(tmp_path, -3, -1)
    ends = {}
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends["client"] = raw_context(expired, expired).wrap_bio(back, there)
    ends["server"] = raw_context(expired, expired, is_server=True).wrap_bio(there, back, server_side=True)
    reasons = {}
    for name in ("client", "server", "client", "server"):
        try:
            ends[name].do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            reasons[name] = explain_refusal("somebody", error)
    assert {name: error.reason for name, error in reasons.items()} == dict.fromkeys(ends, Refusal.EXPIRED)
    assert "see whether the clocks are right" in str(reasons["server"])


def spoilt(keys: ClusterKeys, other: ClusterKeys, folder: Path, how: str) -> ClusterKeys:
    certificate, key = keys.certificate.read_bytes(), keys.key.read_bytes()
    match how:
        case "two certificates":
            certificate += other.certificate.read_bytes()
        case "no certificate in it":
            certificate = b"hello"
        case "damaged certificate":
            certificate = certificate.replace(b"\nMII", b"\n!!!", 1)
        case "half a certificate":
            certificate = certificate[:300] + b"\n-----END CERTIFICATE-----\n"
        case "key of another":
            key = other.key.read_bytes()
        case "no key in it":
            key = b"hello"
        case "key with a passphrase":
            key = pem_of(ec.generate_private_key(ec.SECP256R1()), b"secret")
    spoilt_keys = write_pair(folder, certificate, key)
    match how:
        case "certificate is missing":
            spoilt_keys.certificate.unlink()
        case "key is missing":
            spoilt_keys.key.unlink()
        case "key for the group":
            spoilt_keys.key.chmod(0o640)
        case "key for all":
            spoilt_keys.key.chmod(0o604)
        case "folder for a key":
            spoilt_keys.key.unlink()
            spoilt_keys.key.mkdir(0o700)
    return spoilt_keys


@pytest.mark.parametrize(("how", "option", "said"), [
    ("two certificates", "certificate", "it holds 2 certificates in PEM, not one"),
    ("no certificate in it", "certificate", "it holds 0 certificates in PEM, not one"),
    ("damaged certificate", "certificate", "damaged"),
    ("half a certificate", "certificate", "damaged"),
    ("key of another", "key", "it is no private key of cluster.crt"),
    ("no key in it", "key", "it is no private key of cluster.crt"),
    ("key with a passphrase", "key", "it is encrypted, and nobody is there to type the passphrase"),
    ("folder for a key", "key", "it is no private key of cluster.crt"),
    ("certificate is missing", "certificate", "No such file or directory"),
    ("key is missing", "key", "No such file or directory"),
    ("key for the group", "key", "others on this machine may use it, by its mode 640; `chmod 600` it"),
    ("key for all", "key", "others on this machine may use it, by its mode 604; `chmod 600` it"),
])  # fmt: skip
def test_files_that_cannot_be_used(
    keys: ClusterKeys, other_keys: ClusterKeys, tmp_path: Path, how: str, option: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)) as refused:
        within(spoilt(keys, other_keys, tmp_path, how).load)
    assert refused.value.option == option
    assert str(tmp_path) in str(refused.value)


def test_a_link_to_a_key_counts_as_the_key(keys: ClusterKeys, tmp_path: Path) -> None:
    linked = ClusterKeys(tmp_path / "c", tmp_path / "k")
    linked.certificate.symlink_to(keys.certificate)
    linked.key.symlink_to(keys.key)
    with connected(linked) as (client, server):
        within(client.write, [b"x"])
        assert within(server.read, 1) == b"x"


def test_keys_can_be_given_to_another_process(keys: ClusterKeys) -> None:
    assert pickle.loads(pickle.dumps(keys)) == keys
    assert ClusterKeys.in_folder(os.fspath(keys.key.parent)) == keys


def test_a_refusal_survives_pickling() -> None:
    error = HandshakeError.of("127.0.0.1:9", Refusal.PLAIN_TCP)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.peer, copy.reason) == (str(error), error.peer, error.reason)
    assert isinstance(copy, OSError)


@pytest.mark.parametrize("reason", Refusal)
def test_every_refusal_says_what_to_do(reason: Refusal) -> None:
    said = str(HandshakeError.of("127.0.0.1:9", reason))
    assert said.startswith(f"127.0.0.1:9: {reason.value}")
    assert len(said.split("; ")) == 2


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_pair_in_memory_is_as_good_as_its_files_and_leaves_none(
    tmp_path: Path, keys: ClusterKeys, monkeypatch: pytest.MonkeyPatch, has_memory_files: bool
) -> None:
    if not has_memory_files:
        monkeypatch.delattr("os.memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pair = PemPair(keys.certificate.read_bytes(), keys.key.read_bytes())
    with connected(pickle.loads(pickle.dumps(pair))) as (client, server):
        assert list(tmp_path.iterdir()) == []
        client.write([b"x"])
        assert within(server.read, 1) == b"x"
    with pytest.raises(ConfigError, match="it is no private key of"):
        PemPair(pair.certificate, b"").load()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no files in memory")
def test_a_pair_in_memory_needs_no_folder_that_a_killed_process_would_leave(
    tmp_path: Path, keys: ClusterKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    num_open = len(list(Path("/proc/self/fd").iterdir()))
    PemPair(keys.certificate.read_bytes(), keys.key.read_bytes()).load()
    assert len(list(Path("/proc/self/fd").iterdir())) == num_open
    monkeypatch.delattr("os.memfd_create")
    with pytest.raises(FileNotFoundError):
        PemPair(keys.certificate.read_bytes(), keys.key.read_bytes()).load()


def test_a_pair_that_is_printed_keeps_its_secret(keys: ClusterKeys) -> None:
    pair = PemPair(keys.certificate.read_bytes(), keys.key.read_bytes())
    assert "BEGIN" not in f"{pair} {pair!r}"
