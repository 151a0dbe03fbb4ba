"""The certificate of a class: made once, and kept beside the class file where only its owner can read it."""

from __future__ import annotations

import contextlib
import datetime
import os
import ssl
import sys
from pathlib import Path

from course.classroom.class_file import ClassError
from course.learner.pinned import certificate_code

__all__ = ["class_certificate"]

_DAYS = 3650
"""Learners know it by its code, whatever its dates; for a browser they have to be right."""


def class_certificate(path: Path) -> tuple[ssl.SSLContext, str]:
    """How the class in this file proves itself, and the code of its certificate; made if there is none.

    If it takes the place of one that cannot be used, that is said.

    Raises:
        ClassError: the file beside the class cannot be written.
    """
    place = path.with_name(f"{path.name}.pem")
    if place.exists():
        with contextlib.suppress(OSError, ValueError):  # an SSLError is an OSError
            return _loaded(place)
        print(
            f"! The certificate of this class in {place} could not be used: there is a new one, with another code. "
            "Learners have to leave, and join again with that.",
            file=sys.stderr,
        )
    try:
        _make(place)
        return _loaded(place)
    except OSError as error:
        raise ClassError(f"{place} cannot be written: {error.strerror}; name another file with --db") from error


def _loaded(place: Path) -> tuple[ssl.SSLContext, str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(place)
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    text = place.read_text(encoding="ascii")
    pem = begin + text.partition(begin)[2].partition(end)[0] + end
    return context, certificate_code(ssl.PEM_cert_to_DER_cert(pem))


def _make(place: Path) -> None:
    from course.spark.cluster_keys import CLOCK_DIFFERENCE, new_pair

    now = datetime.datetime.now(datetime.UTC)
    certificate, key = new_pair(now - CLOCK_DIFFERENCE, now + datetime.timedelta(days=_DAYS), name="Sluice class")
    new = place.with_name(f"{place.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(key + certificate)
        file.flush()
        os.fsync(file.fileno())
    new.replace(place)
