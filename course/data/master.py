"""Where Spark is to run: what a master URL says, and whether somebody is there.

Left to itself Spark waits a minute for a master that is not there, and complains about a URL it cannot read with a
stack trace. So both are looked at before it starts.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

__all__ = ["Master", "MasterError", "master_of"]

_LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]")
_STANDALONE = re.compile(r"spark://(?P<addresses>[^,/]+:\d+(,[^,/]+:\d+)*)")
_ELSEWHERE = re.compile(r"yarn|k8s://.+")
_TIMEOUT_S = 3.0
_FORMS = "local[2], local-cluster[2,1,1024], spark://HOST:PORT, yarn or k8s://…"


class MasterError(ValueError):
    """There is no Spark at this master URL, or it is none; the text is one sentence without a full stop."""


@dataclass(frozen=True, slots=True)
class Master:
    """A master URL. `addresses` are those of a standalone master, one of which must answer."""

    url: str
    addresses: tuple[tuple[str, int], ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether all executors are on this machine, and meet on loopback."""
        if self.addresses:
            return all(_is_loopback(host) for host, _ in self.addresses)
        return self.url.startswith("local")

    @property
    def has_own_workers(self) -> bool:
        """Whether it starts workers of its own, on this machine."""
        return self.url.startswith("local-cluster")

    def check_that_it_answers(self) -> None:
        """Connect to a standalone master, for a moment.

        Raises:
            MasterError: nobody is there.
        """
        reasons = []
        for address in self.addresses:
            try:
                socket.create_connection(address, _TIMEOUT_S).close()
            except OSError as error:
                reasons.append(error.strerror or f"no answer for {_TIMEOUT_S:.0f} s")
            else:
                return
        if reasons:
            advice = "`sluice cluster start` starts one on this machine" if self.is_here else "is it the right address?"
            raise MasterError(f"no master is at {self.url} ({reasons[0]}); {advice}")


def master_of(url: str) -> Master:
    """Read a master URL.

    Raises:
        MasterError: it is none.
    """
    if match := _STANDALONE.fullmatch(url):
        parts = [part.rpartition(":") for part in match["addresses"].split(",")]
        addresses = tuple((host.strip("[]"), int(port)) for host, _, port in parts)
        if all(0 < port < 65_536 for _, port in addresses):
            return Master(url, addresses)
    elif any(form.fullmatch(url) for form in (_LOCAL, _LOCAL_CLUSTER, _ELSEWHERE)):
        return Master(url)
    hint = "; Spark Connect (sc://) has no tasks that work together" if url.startswith("sc://") else ""
    raise MasterError(f"{url!r} is no master URL such as {_FORMS}{hint}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
