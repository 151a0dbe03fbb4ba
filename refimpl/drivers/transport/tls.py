"""Membership of a cluster: the processes that have the key of its one certificate, and no others.

Rules of this file:
- Both ends of a connection show the certificate, and prove that they have its key. It is trusted and no
  other, whoever signed that one.
- Host names are not looked at, as in Flink's internal connections. They would tell one server from
  another one that the same authority trusts; here all have the same certificate, and may be anywhere.
- What is wrong with the files is said when they are loaded, not to the first stranger who connects.

Flink:   SSLUtils (runtime.net), security.ssl.internal.*, 1.11.4
Differs: the certificate and its key are two PEM files; Flink has Java key stores.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from refimpl.drivers.transport.refusals import HandshakeError, Refusal
from refimpl.drivers.transport.sockets import PlainStream
from refimpl.drivers.transport.tls_stream import TlsStream
from refimpl.errors import ConfigError

__all__ = ["ClusterKeys", "MutualTls", "PemPair"]

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClusterKeys:
    """Where the cluster's certificate and its private key are; `sluice cluster keys` makes them."""

    certificate: Path
    key: Path

    @classmethod
    def in_folder(cls, folder: Path | str) -> ClusterKeys:
        """The keys in a folder that `sluice cluster keys` has made."""
        return cls(Path(folder) / "cluster.crt", Path(folder) / "cluster.key")

    def load(self) -> MutualTls:
        """Read and try both files.

        Raises:
            ConfigError: one cannot be used, and why: missing, expired, open to others, not a pair.
        """
        return MutualTls(self)


@dataclass(frozen=True, slots=True)
class PemPair:
    """A certificate and its key as text in memory: how a run's own keys reach machines that share no disk."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "PemPair(…)"  # nothing that is printed has the key in it

    def load(self) -> MutualTls:
        """Try both.

        Raises:
            ConfigError: as `ClusterKeys.load`.
            OSError: there is no place for temporary files.
        """
        has_memory_files = hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir()
        with _memory_files(self) if has_memory_files else _temporary_files(self) as keys:
            return keys.load()


class MutualTls:
    """Shakes hands with ends that have the same certificate, and with no others.

    Raises:
        ConfigError: as `ClusterKeys.load`.
    """

    def __init__(self, keys: ClusterKeys) -> None:
        self._certificate = _certificate_in(keys.certificate)
        _check_that_nobody_else_can_read(keys.key)
        self._server = self._context(keys, ssl.PROTOCOL_TLS_SERVER)
        self._server.num_tickets = 0  # nobody resumes a session
        self._client = self._context(keys, ssl.PROTOCOL_TLS_CLIENT)
        self._try_alone(keys)

    def __call__(self, stream: PlainStream, *, is_server: bool, timeout_s: float) -> TlsStream:
        """Make a protected stream of a connected one, within `timeout_s`, or close it.

        Raises:
            HandshakeError: the other end is not of this cluster; says what it is.
        """
        protected = TlsStream(stream, self._server if is_server else self._client, is_server)
        try:
            shown = protected.shake_hands(timeout_s)
            if shown != self._certificate:
                raise HandshakeError.of(stream.peer, Refusal.OTHER_CERTIFICATE)
            stream.limit(None)
        except BaseException:
            stream.close()
            raise
        return protected

    def _context(self, keys: ClusterKeys, protocol: ssl._SSLMethod) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cadata=self._certificate)
        except ssl.SSLError as error:
            raise _unusable("certificate", keys.certificate, "it is damaged") from error
        try:
            context.load_cert_chain(keys.certificate, keys.key, password=_no_passphrase)
        except OSError as error:
            raise _unusable("key", keys.key, f"it is no private key of {keys.certificate.name}") from error
        except ValueError as error:
            raise _unusable("key", keys.key, f"{error}") from error
        return context

    def _try_alone(self, keys: ClusterKeys) -> None:
        """Shake hands with ourselves: what is wrong with the certificate had better be said now."""
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = [self._client.wrap_bio(back, there), self._server.wrap_bio(there, back, server_side=True)]
        try:
            for _round in range(3):
                for end in ends:
                    with contextlib.suppress(ssl.SSLWantReadError):
                        end.do_handshake()
        except ssl.SSLCertVerificationError as error:
            # 9 and 10 are OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED.
            why = {9: "it is not valid yet; is the clock right?", 10: "it has expired"}.get(
                error.verify_code, error.verify_message
            )
            raise _unusable("certificate", keys.certificate, why) from error
        except ssl.SSLError as error:
            raise _unusable("certificate", keys.certificate, f"{error.reason or error}") from error


# -- files -----------------------------------------------------------------------------------------------

# OpenSSL takes a key from a file only. It is there, for us alone, while it is being read.


@contextlib.contextmanager
def _memory_files(pair: PemPair) -> Iterator[ClusterKeys]:
    """The pair in files without a name: however this process ends, nothing of them is left."""
    with contextlib.ExitStack() as files:
        paths = []
        for name, content in (("certificate", pair.certificate), ("key", pair.key)):
            file = files.enter_context(os.fdopen(os.memfd_create(name), "wb"))
            os.fchmod(file.fileno(), 0o600)  # they begin with 777
            file.write(content)
            file.flush()
            paths.append(Path(f"/proc/self/fd/{file.fileno()}"))
        yield ClusterKeys(*paths)


@contextlib.contextmanager
def _temporary_files(pair: PemPair) -> Iterator[ClusterKeys]:
    """The pair in a folder, which stays if this process is killed meanwhile."""
    with TemporaryDirectory(prefix="sluice-keys-") as folder:
        keys = ClusterKeys.in_folder(folder)
        for file, content in ((keys.certificate, pair.certificate), (keys.key, pair.key)):
            file.touch(0o600)
            file.write_bytes(content)
        yield keys


def _certificate_in(file: Path) -> bytes:
    """The one certificate of a PEM file, as DER."""
    try:
        text = file.read_bytes().decode("ascii", "replace")
    except OSError as error:
        raise _unusable("certificate", file, f"{error.strerror}") from error
    found = _PEM.findall(text)
    if len(found) != 1:
        raise _unusable("certificate", file, f"it holds {len(found)} certificates in PEM, not one")
    try:
        return ssl.PEM_cert_to_DER_cert(found[0])
    except ValueError as error:
        raise _unusable("certificate", file, "it is damaged") from error


def _check_that_nobody_else_can_read(key: Path) -> None:
    try:
        mode = key.stat().st_mode
    except OSError as error:
        raise _unusable("key", key, f"{error.strerror}") from error
    if os.name == "posix" and mode & 0o077:
        raise ConfigError(
            "key", str(key), f"others on this machine may use it, by its mode {mode & 0o777:o}; `chmod 600` it"
        )


def _no_passphrase() -> str:
    raise ValueError("it is encrypted, and nobody is there to type the passphrase")


def _unusable(option: str, file: Path, why: str) -> ConfigError:
    return ConfigError(option, str(file), f"{why}; `sluice cluster keys DIR` makes a pair for every process")
