"""An encrypted connection to a class whose certificate nobody has signed: it is known by its code, and by nothing else.

The instructor shows the code of the certificate, the learner types it, and it is compared before anything is sent. So
nobody needs an authority, and whoever stands between the two has another certificate, and with it another code.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ssl

from course.learner.class_events import ALPHABET, spoken

__all__ = ["CODE_LETTERS", "OtherCertificateError", "PinnedConnection", "certificate_code", "read_code", "shown_by"]

CODE_LETTERS = 16
"""Of 31 letters: 79 bits of the hash. Whoever wants another certificate of the same code has 2**79 to try."""
_GROUP = 4


class OtherCertificateError(ssl.SSLError):
    """The other end has another certificate than the one that was wanted; `shown` is the code of its own."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"it shows the certificate {shown}, which is not the one you named")
        self.shown = shown
        self.strerror = str(self.args[0])


def certificate_code(certificate: bytes) -> str:
    """The code of this certificate (DER): the first letters of its SHA-256, in base 31, in groups."""
    number, letters = int.from_bytes(hashlib.sha256(certificate).digest()), []
    for _ in range(CODE_LETTERS):
        number, rest = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[rest])
    return "-".join("".join(letters[at : at + _GROUP]) for at in range(0, CODE_LETTERS, _GROUP))


def read_code(text: str) -> str | None:
    """The code as it is shown, however it was typed; None if it cannot be one."""
    plain = spoken(text)
    if len(plain) != CODE_LETTERS or not set(plain) <= set(ALPHABET):
        return None
    return "-".join(plain[at : at + _GROUP] for at in range(0, CODE_LETTERS, _GROUP))


class PinnedConnection(http.client.HTTPSConnection):
    """A connection that sends nothing before the certificate of this code was shown, and its key proved.

    Raises:
        OtherCertificateError: when it connects, the other end has another one.
        OSError: it has none, or does not answer.
    """

    def __init__(self, host: str, port: int, code: str, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=_context())
        self._code = code

    def connect(self) -> None:
        super().connect()
        assert isinstance(self.sock, ssl.SSLSocket)
        shown = certificate_code(self.sock.getpeercert(binary_form=True) or b"")
        if not hmac.compare_digest(shown, self._code):
            self.close()
            raise OtherCertificateError(shown)


def shown_by(host: str, port: int, timeout: float) -> str:
    """The code of the certificate that is shown there; it proves nothing before somebody compares it.

    Raises:
        OSError: nobody answers, or without a certificate.
    """
    connection = PinnedConnection(host, port, "", timeout)
    try:
        connection.connect()
    except OtherCertificateError as error:
        return error.shown
    finally:
        connection.close()
    raise ConnectionError("it has no certificate")


def _context() -> ssl.SSLContext:
    """Whoever answers proves that it has the key of the certificate it shows; which one that is, is looked at above."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
