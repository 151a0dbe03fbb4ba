"""`sluice cluster keys DIR`: the certificate and the key that every process of a cluster has to show.

The certificate is self-signed, and names no machine and no user. The pair is there or it is not: both files are
written beside their places first and put there last, the certificate after its key. A machine that dies between the
two leaves no certificate, and never one of another key.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import shlex
import signal
import stat
import sys
from functools import partial
from pathlib import Path

__all__ = ["ClusterKeysError", "add_arguments", "make_keys", "new_pair"]

DEFAULT_DAYS = 365
MAX_DAYS = 36_500
CLOCK_DIFFERENCE = datetime.timedelta(hours=1)
"""How far the clock of another machine may be behind ours."""

_ADVICE = """✓ {folder} holds cluster.crt and cluster.key, valid until {day}.

Whoever has cluster.key can join the cluster and read its data; nobody else can. Every process of the cluster needs
this folder, so copy it to each machine over a protected way, such as

  scp -pr {quoted} MACHINE:

and {use}"""
_USE = "let whatever opens a connection have it: security=ClusterKeys.in_folder({name!r})"


class ClusterKeysError(Exception):
    """The keys cannot be made as it was asked; the text says why and what to do."""


def new_pair(
    not_before: datetime.datetime, not_after: datetime.datetime, name: str = "Sluice cluster"
) -> tuple[bytes, bytes]:
    """Make a self-signed certificate and its key, both as PEM; the key is not encrypted."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "key_cert_sign",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    both_ends = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, **usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_ends), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), secret


def make_keys(folder: Path, days: int = DEFAULT_DAYS, *, force: bool = False) -> datetime.date:
    """Make `cluster.crt` and `cluster.key` in `folder`; return the last day of their validity.

    Raises:
        ClusterKeysError: there are keys already, or the folder is open to others.
        OSError: the files cannot be written; none of them is there then, and older ones stay.
    """
    from refimpl.drivers.transport.tls import ClusterKeys

    keys = ClusterKeys.in_folder(folder)
    now = datetime.datetime.now(datetime.UTC)
    until = now + datetime.timedelta(days=days)
    is_new = _prepare(folder)
    staged: list[Path] = []
    try:
        there = [file.name for file in (keys.certificate, keys.key) if os.path.lexists(file)]
        if there and not force:
            raise ClusterKeysError(
                f"{folder} has {' and '.join(there)} already, and processes that use them would not know new ones; "
                "--force replaces them, or name another folder"
            )
        certificate, key = new_pair(now - CLOCK_DIFFERENCE, until)
        for file, content, mode in ((keys.key, key, 0o600), (keys.certificate, certificate, 0o644)):
            staged.append(file.with_name(f"{file.name}.new"))
            _write(staged[-1], content, mode)
        _put(staged, keys.key, keys.certificate)
    except BaseException:
        for file in staged:
            file.unlink(missing_ok=True)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    return until.date()


def _prepare(folder: Path) -> bool:
    """Make the folder, if it is not there; return whether it was made."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not folder.is_dir():
            raise ClusterKeysError(f"{folder} is a file; name a folder for the keys") from None
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & 0o077:
            raise ClusterKeysError(
                f"{folder} is open to others on this machine (mode {mode:o}); `chmod 700` it, or name a new folder"
            ) from None
        return False
    folder.chmod(0o700)  # whatever the umask
    return True


def _write(file: Path, content: bytes, mode: int) -> None:
    """Write a new file down to the disk. What an earlier run left of it goes."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        os.fchmod(opened.fileno(), mode)
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _put(staged: list[Path], key: Path, certificate: Path) -> None:
    """Put the written files where they belong, with nothing to interrupt it."""
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        certificate.unlink(missing_ok=True)
        for source, target in zip(staged, (key, certificate), strict=True):
            source.replace(target)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _days(word: str) -> int:
    with contextlib.suppress(ValueError):
        if 1 <= int(word) <= MAX_DAYS:
            return int(word)
    raise argparse.ArgumentTypeError(f"{word!r} is no whole number from 1 to {MAX_DAYS}")


def add_arguments(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    example: str = "sluice cluster keys ~/sluice-keys",
    use: str = _USE,
) -> None:
    """Describe `sluice cluster keys`, or what is like it; `use` says what to do with a folder of keys."""
    keys = actions.add_parser(
        "keys",
        help="make the certificate and key that every process must show",
        description="Make the certificate and the key that every process of a cluster must show. Without them "
        "processes connect only within one machine.",
        epilog=f"example: {example}",
    )
    keys.add_argument("folder", metavar="DIR", help="the folder for cluster.crt and cluster.key; made if needed")
    said = "days until they expire (%(default)s)"
    keys.add_argument("--days", type=_days, default=DEFAULT_DAYS, metavar="N", help=said)
    keys.add_argument("--force", action="store_true", help="replace the keys that are there")
    keys.set_defaults(act=partial(_run, use))


def _run(use: str, arguments: argparse.Namespace) -> int:
    """Run `sluice cluster keys`; return the exit status: 0 made, 1 could not be written, 2 wrong use."""
    try:
        day = make_keys(Path(arguments.folder), arguments.days, force=arguments.force)
    except ClusterKeysError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"No keys were made: {arguments.folder} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    name = arguments.folder
    quoted = shlex.quote(name)
    print(_ADVICE.format(folder=name, quoted=quoted, day=day, use=use.format(name=name, quoted=quoted)))
    return 0
