"""The thread that all components of a process live on: one message, one piece of news, one deadline at a time.

Nothing on it waits for anything but the next message. Whatever takes time, the store, user code, a file, is done on
another thread, which hands back what came of it with `post`.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Protocol

from refimpl.cluster.endpoint import Endpoint
from refimpl.cluster.fencing import Envelope
from refimpl.cluster.messages import Message
from refimpl.drivers.cluster.high_availability.leaders import Leaders, Leadership
from refimpl.drivers.cluster.rpc.address import place_of
from refimpl.drivers.cluster.rpc.inbox import ConnectionLost
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.drivers.processing_clock import ProcessingClock

__all__ = ["Component", "ComponentLoop"]

_LOOK_AT_LEADERS_MS = 100.0


class Component(Protocol):
    """One component: its endpoint, and what its driver does beside carrying messages."""

    @property
    def endpoint(self) -> Endpoint: ...

    def leaders_are(self, leaders: Mapping[str, Leadership], now_ms: float) -> None:
        """Who leads what, told again and again."""

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        """The connection to a peer has ended."""

    def step(self, now_ms: float) -> None:
        """Something may have happened: see what follows, before the endpoint's messages are taken."""


class ComponentLoop:
    """Runs the components of the process that `rpc` speaks for, until `close`.

    `on_bug` hears what one of them has raised, which nobody has foreseen; the loop ends with it.

    Flink:   RpcService, the main thread of an RpcEndpoint (runtime.rpc), 1.11.4
    Differs: one thread for all endpoints of a process.
    """

    def __init__(self, rpc: RpcService, leaders: Leaders, on_bug: Callable[[BaseException], None]) -> None:
        self.clock = ProcessingClock(None)
        self.place = rpc.place
        self._rpc = rpc
        self._leaders = leaders
        self._on_bug = on_bug
        self._components: dict[str, Component] = {}
        self._contacts: defaultdict[str, set[str]] = defaultdict(set)
        self._posted: deque[Callable[[float], None]] = deque()
        self._look_at_ms = 0.0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=f"components at {rpc.place}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def post(self, call: Callable[[float], None]) -> None:
        """Let this be called on the loop's thread, with the time. Any thread; never waits."""
        self._posted.append(call)
        self._rpc.wake()

    def add(self, component: Component) -> None:
        """A component begins to live here. On the loop's thread, or before `start`."""
        self._components[component.endpoint.address] = component
        self._rpc.wake()

    def remove(self, component: Component) -> None:
        """A component is no more; its last messages go out. On the loop's thread."""
        address = component.endpoint.address
        if self._components.get(address) is component:
            self._send_of(component)
            del self._components[address]
            self._contacts.pop(address, None)

    def close(self) -> None:
        """End the loop; what its components have begun elsewhere is theirs to end. Not on the loop's thread."""
        self._is_closed = True
        self._rpc.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._rpc.close()

    # -- the thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_closed:
                self._round()
        except BaseException as bug:  # noqa: BLE001 - told to who started the loop
            self._on_bug(bug)

    def _round(self) -> None:
        for post in self._rpc.poll(self._wait_s()):
            self._receive(post)
        now_ms = self.clock.now_ms
        while self._posted:
            self._posted.popleft()(now_ms)
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + _LOOK_AT_LEADERS_MS
            leaders = self._leaders.all()
            for component in list(self._components.values()):
                component.leaders_are(leaders, now_ms)
        for component in list(self._components.values()):
            deadline_ms = component.endpoint.next_deadline
            if deadline_ms is not None and deadline_ms <= now_ms:
                component.endpoint.on_timeout(now_ms)
            component.step(now_ms)
            self._send_of(component)

    def _wait_s(self) -> float:
        if self._posted:
            return 0.0
        ends = [each.endpoint.next_deadline for each in self._components.values()]
        end_ms = min((end for end in [*ends, self._look_at_ms] if end is not None), default=0.0)
        return max(0.0, end_ms - self.clock.now_ms) / 1000

    def _receive(self, post: Envelope[Message] | ConnectionLost) -> None:
        now_ms = self.clock.now_ms
        if isinstance(post, Envelope):
            component = self._components.get(post.receiver)
            if component is not None and component.endpoint.receive(post, now_ms) is None:
                self._contacts[post.receiver].add(post.sender)
            return
        for address, component in list(self._components.items()):
            for peer in [each for each in self._contacts[address] if place_of(each) == post.place]:
                self._contacts[address].discard(peer)
                component.peer_is_gone(peer, f"the connection to {peer} has ended: {post.why}", now_ms)
        self._rpc.forget(post.place)

    def _send_of(self, component: Component) -> None:
        for envelope in component.endpoint.messages_to_send():
            self._contacts[component.endpoint.address].add(envelope.receiver)
            self._rpc.send(envelope)
