"""Where a component is: its address is its name, and the place of the process that it lives in."""

from __future__ import annotations

import re

from refimpl.errors import LocalUsageError

__all__ = ["parse_place", "place_of", "rpc_address"]

_PLACE = re.compile(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([\w.-]+)):(\d{1,5})", re.ASCII)
_MAX_CHARACTERS = 300


def rpc_address(name: str, place: str) -> str:
    """The address of component `name` at `place`, such as `resource-manager@127.0.0.1:40123`.

    Flink:   AkkaRpcServiceUtils.getRpcUrl (runtime.rpc.akka), 1.11.4
    Differs: no protocol is named, there is one.
    """
    parse_place(place)
    if not name or "@" in name:
        raise LocalUsageError(f"a component has a name without @, got {name!r}")
    return f"{name}@{place}"


def place_of(address: str) -> str:
    """The place in an address: the process to which whatever is for this component has to be sent.

    Raises:
        LocalUsageError: there is none in it.
    """
    name, at, place = address.rpartition("@")
    if not name or not at:
        raise LocalUsageError(f"an address is name@host:port, got {address[:_MAX_CHARACTERS]!r}")
    parse_place(place)
    return place


def parse_place(place: str) -> tuple[str, int]:
    """The host and the port of a place, as `listen` and `connect` take them.

    Raises:
        LocalUsageError: it is none.
    """
    found = _PLACE.fullmatch(place) if len(place) <= _MAX_CHARACTERS else None
    if found is None or not 0 < int(found[3]) <= 65_535:
        raise LocalUsageError(f"a place is host:port or [host]:port, got {place[:_MAX_CHARACTERS]!r}")
    return found[1] or found[2], int(found[3])
