"""The secret that the processes of one cluster share, and nobody else has."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from refimpl.errors import ConfigError

__all__ = ["CLUSTER_VARIABLE", "SECRET_BYTES", "ClusterSecret"]

SECRET_BYTES = 32
CLUSTER_VARIABLE = "SLUICE_CLUSTER_SECRET"


class ClusterSecret:
    """32 bytes or more, which are never printed, pickled by nobody, and on no command line.

    Raises:
        ConfigError: they are fewer.

    Flink:   no such thing; there only TLS says who belongs to a cluster.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) < SECRET_BYTES:
            raise ConfigError("cluster_secret", "…", f"it has {len(secret)} B, and the least is {SECRET_BYTES} B")
        self.secret = secret

    def __repr__(self) -> str:
        return "ClusterSecret(…)"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret goes to another process by its file, or by that process's environment")

    @classmethod
    def new(cls) -> ClusterSecret:
        """A secret that nobody has had before."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    @classmethod
    def make_file(cls, file: Path | str) -> ClusterSecret:
        """A new secret in a new file, which only its owner may read.

        Raises:
            ConfigError: there is such a file already, or none can be made.
        """
        made = cls.new()
        try:
            number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(number, "wb") as target:
                target.write(made.as_text().encode() + b"\n")
        except OSError as error:
            raise ConfigError("cluster_secret", str(file), f"{error.strerror}") from error
        return made

    @classmethod
    def of_file(cls, file: Path | str) -> ClusterSecret:
        """The secret in a file that `make_file` has made.

        Raises:
            ConfigError: it cannot be read, others may read it, or no secret is in it.
        """
        try:
            number = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            with os.fdopen(number, "rb") as source:
                mode = os.fstat(number).st_mode  # of the file that is read, whatever its name means later
                text = source.read(1000)
        except OSError as error:
            raise ConfigError("cluster_secret", str(file), f"{error.strerror}") from error
        if os.name == "posix" and mode & 0o077:
            why = f"others on this machine may use it, by its mode {mode & 0o777:o}; `chmod 600` it"
            raise ConfigError("cluster_secret", str(file), why)
        return cls._of_text(text, str(file))

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> ClusterSecret:
        """The secret in `SLUICE_CLUSTER_SECRET`.

        Raises:
            ConfigError: there is none.
        """
        if CLUSTER_VARIABLE not in environment:
            raise ConfigError("cluster_secret", None, f"the variable {CLUSTER_VARIABLE} is not set")
        return cls._of_text(environment[CLUSTER_VARIABLE].encode(), CLUSTER_VARIABLE)

    def as_text(self) -> str:
        """The secret as a file or the environment has it: in Base64."""
        return base64.b64encode(self.secret).decode()

    @classmethod
    def _of_text(cls, text: bytes, where: str) -> ClusterSecret:
        try:
            return cls(base64.b64decode(text.strip(), validate=True))
        except binascii.Error as error:
            raise ConfigError("cluster_secret", where, f"what stands there is no Base64: {error}") from error
