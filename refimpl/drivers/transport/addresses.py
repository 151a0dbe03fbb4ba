"""Which addresses a connection may use: without cluster keys, only those of this machine itself.

Rules of this file:
- A name is resolved once, here, and what it resolved to is used. A name that resolves to something
  else a moment later can change nothing.
- Every address of a name must be loopback, since nobody says which of them will be used.
"""

from __future__ import annotations

import ipaddress
import socket

from refimpl.errors import ConfigError

__all__ = ["Address", "is_loopback", "resolve_address", "show_address"]

Address = tuple[socket.AddressFamily, tuple[str | int | bytes, ...]]
"""A family, and what `bind` and `connect` of a socket of that family take."""


def resolve_address(host: str, port: int, *, is_protected: bool) -> list[Address]:
    """The addresses of `host`, in the order in which to try them.

    Raises:
        ConfigError: there is none, or it may not be used without keys; says what to do.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:
        raise ConfigError("port", port, "it must be a whole number from 0 to 65535")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: the text cannot be a name at all
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError("host", host, f"no address is known for it: {reason}") from error
    for *_rest, (ip, *_more) in found:
        if not is_protected and not is_loopback(str(ip)):
            raise ConfigError(
                "host",
                host,
                f"{ip} can be reached from outside this machine, and without cluster keys anybody who "
                f"reaches it could read and change the data. Use 127.0.0.1; or make keys with "
                f"`sluice cluster keys DIR`, and give that folder to every process of the cluster",
            )
    return [(family, address) for family, _, _, _, address in found]


def show_address(host: object, port: object) -> str:
    """An address as in messages: `127.0.0.1:40123`, `[::1]:40123`."""
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def is_loopback(ip: str) -> bool:
    """Whether only this machine can be at the other end: 127.0.0.0/8 and ::1."""
    address = ipaddress.ip_address(ip)
    # ::ffff:127.0.0.1 is 127.0.0.1, which Python knows from 3.13 on.
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
