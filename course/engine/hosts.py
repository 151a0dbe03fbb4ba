"""Where a process of a cluster listens, and the keys that it shows to the others and asks of them."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from typing import Any

from refimpl.drivers.transport.addresses import resolve_address
from refimpl.drivers.transport.tls import ClusterKeys
from refimpl.errors import ConfigError, LocalUsageError

__all__ = ["KEYS_ADVICE", "add_hosts", "hosts_of", "keys_in"]

_LOOPBACK = "127.0.0.1"

KEYS_ADVICE = "let whatever starts or uses the cluster have it, such as `sluice engine start --tls {quoted}`"
"""What the keys are for, behind "Every process of the cluster needs this folder"."""


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Where a process listens, and with which keys."""
    group = parser.add_argument_group("hosts")
    group.add_argument(
        "--host",
        default=_LOOPBACK,
        metavar="HOST",
        help="this machine's address, at which others reach what is started here (%(default)s: only this machine); any "
        "that can be reached from outside needs --tls, and the folder on a disk that all machines share",
    )
    said = "the cluster's keys, which `sluice engine keys DIR` makes; whoever has others or none is refused"
    group.add_argument("--tls", type=Path, metavar="DIR", help=said)


def hosts_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Where a process listens, and the folder of its keys, as options of a node.

    Raises:
        ConfigError: the keys cannot be used.
        LocalUsageError: others cannot reach it there, or strangers could.
    """
    keys: Path | None = arguments.tls
    security = keys_in(keys)
    if security is not None:
        security.load()
    for family, address in resolve_address(arguments.host, 0, is_protected=True):
        if socket.inet_pton(family, str(address[0]).partition("%")[0]).strip(b"\0") == b"":
            raise LocalUsageError(
                f"--host {arguments.host} is each address of this machine, and none at which others could reach it; "
                f"name the one that they know"
            )
    try:
        resolve_address(arguments.host, 0, is_protected=security is not None)
    except ConfigError as error:
        raise LocalUsageError(
            f"--host {arguments.host} can be reached from outside this machine, and without keys anybody who reaches "
            f"it could read and change the data; make keys with `sluice engine keys DIR`, and give that folder with "
            f"--tls to every process of the cluster"
        ) from error
    return {"host": arguments.host, "keys": None if keys is None else str(keys.absolute())}


def keys_in(folder: Path | str | None) -> ClusterKeys | None:
    """The keys in a folder; none without one."""
    return None if folder is None else ClusterKeys.in_folder(folder)
