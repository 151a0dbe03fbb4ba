"""A client of a cluster: it asks the Dispatcher, whoever that is at the moment, and waits for the answer."""

from __future__ import annotations

import json
import secrets
import time
from itertools import count
from math import inf
from typing import Any

from refimpl.cluster.fencing import Envelope, FencingToken
from refimpl.cluster.messages import ClientAnswer, ClientRequest
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER, Leaders
from refimpl.drivers.cluster.rpc.address import place_of
from refimpl.drivers.cluster.rpc.inbox import ConnectionLost
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.drivers.processes.messages import pack
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.job.environment import StreamEnvironment

__all__ = ["ClusterClient"]

_SECONDS_BETWEEN_LOOKS = 0.05
_REFUSED_FOR_GOOD = 3  # at once, one after the other: nobody dies so often just then


class ClusterClient:
    """Asks over `rpc`; one question at a time.

    Raises (all that ask):
        LocalUsageError: the Dispatcher refuses, and why.
        RemoteTransportError: nobody answers within `timeout_s`, or whoever does takes this for a stranger, again and
            again.

    Flink:   ClusterClient, RestClusterClient (client.program), 1.11.4
    """

    def __init__(self, rpc: RpcService, leaders: Leaders, timeout_s: float = 60.0) -> None:
        self._rpc = rpc
        self._leaders = leaders
        self._timeout_s = timeout_s
        self._address = rpc.address(f"client-{secrets.token_hex(4)}")
        self._token = FencingToken(0, secrets.token_bytes(16))
        self._numbers = count(1)

    def submit(self, job_id: str, environment: StreamEnvironment) -> None:
        """Let a job run; when this returns it will not be lost."""
        self._ask("submit", job_id, job=pack(environment))

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, the oldest first."""
        found: list[dict[str, Any]] = self._ask("list")
        return found

    def status(self, job_id: str) -> dict[str, Any]:
        """One job."""
        found: dict[str, Any] = self._ask("status", job_id)
        return found

    def wait(self, job_id: str, timeout_s: float | None = None) -> dict[str, Any]:
        """How a job is when it is over; without `timeout_s` that may take for ever."""
        found: dict[str, Any] = self._ask("wait", job_id, timeout_s=inf if timeout_s is None else timeout_s)
        return found

    def cancel(self, job_id: str) -> dict[str, Any]:
        """End a job; how it is when it is over."""
        found: dict[str, Any] = self._ask("cancel", job_id)
        return found

    def savepoint(self, job_id: str, name: str) -> None:
        """Take a savepoint; when this returns it is there."""
        self._ask("savepoint", job_id, name)

    def close(self) -> None:
        """Ask no more."""
        self._rpc.close()

    def _ask(
        self, verb: str, job_id: str = "", argument: str = "", job: bytes = b"", timeout_s: float | None = None
    ) -> Any:
        """Ask until there is an answer: again when the connection is lost, and then whoever leads by that time.

        A job that was submitted, and whose answer was lost, is there already: to hear that is the answer.
        """
        request = ClientRequest(next(self._numbers), verb, job_id, argument, job)
        give_up_s = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        asked: tuple[str, FencingToken] | None = None
        num_asked = num_refused = 0
        why = ""
        while time.monotonic() < give_up_s:
            leader = self._leaders.all().get(DISPATCHER)
            if leader is not None and leader != asked:
                asked = leader
                num_asked += 1
                self._rpc.send(Envelope(self._address, self._token, *leader, request))
            for post in self._rpc.poll(_SECONDS_BETWEEN_LOOKS):
                if isinstance(post, ConnectionLost):
                    if asked is not None and place_of(asked[0]) == post.place:
                        asked, why = None, post.why
                        num_refused = num_refused + 1 if post.is_refused else 0
                elif isinstance(answer := post.message, ClientAnswer) and answer.number == request.number:
                    if answer.trouble and not (num_asked > 1 and verb == "submit" and "already" in answer.trouble):
                        raise LocalUsageError(answer.trouble)
                    return json.loads(answer.content or "{}")
            if num_refused >= _REFUSED_FOR_GOOD:
                raise RemoteTransportError(
                    f"{verb} {job_id}".strip() + f": the cluster refuses this process: {why}. It speaks only with who "
                    f"knows its secret and, if it was started with keys, shows the same ones (--tls)"
                )
        who = "nobody leads the cluster" if asked is None else f"the Dispatcher at {asked[0]} does not answer"
        raise RemoteTransportError(f"{verb} {job_id}".strip() + f": {who}; is it up?" + (why and f" Last: {why}"))
