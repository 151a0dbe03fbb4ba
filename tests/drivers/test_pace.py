"""How often one address may connect: others keep their pace, who has gone costs nothing, and lines are short."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from refimpl.drivers.transport.pace import Pace


class Door:
    """A pace with a clock of its own, and clients that are pairs of sockets."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.pace = Pace(lambda: self.now_s)
        self.clients: list[socket.socket] = []
        self.served: list[socket.socket] = []

    def come(self, num: int, host: str = "127.0.0.1") -> list[socket.socket]:
        for _ in range(num):
            client, accepted = socket.socketpair()
            self.pace.come(accepted, host, f"{host}:{len(self.clients)}")
            self.clients.append(client)
        return self.clients[-num:]

    def serve(self) -> list[str]:
        """The clients whose turn it is, as they are shown."""
        served = []
        while (found := self.pace.next()) is not None:
            self.served.append(found[0])
            served.append(found[1])
        return served

    def close(self) -> None:
        self.pace.close()
        for each in [*self.clients, *self.served]:
            each.close()


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    yield door
    door.close()


def is_turned_away(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def test_a_burst_is_served_at_once_and_the_rest_at_the_pace_in_order(door: Door) -> None:
    assert door.pace.wait_s() is None
    door.come(256)
    assert len(door.serve()) == 256
    door.come(100)
    assert door.serve() == []
    assert door.pace.wait_s() == pytest.approx(1 / 50)
    door.now_s += 1.01
    assert door.serve() == [f"127.0.0.1:{number}" for number in range(256, 256 + 50)]
    door.now_s += 100.0
    assert len(door.serve()) == 50
    assert door.pace.wait_s() is None


def test_an_address_that_is_out_of_pace_keeps_no_other_waiting(door: Door) -> None:
    door.come(256, "10.0.0.1")
    door.serve()
    door.come(200, "10.0.0.1")
    door.come(1, "10.0.0.2")
    assert door.serve() == ["10.0.0.2:456"]


@pytest.mark.parametrize("host", ["127.0.0.9", "::1", "::ffff:127.0.0.1"])
def test_the_addresses_of_this_machine_are_one(door: Door, host: str) -> None:
    door.come(256)
    door.serve()
    door.come(1, host)
    assert door.serve() == []


def test_who_has_gone_costs_nothing_and_who_has_not_is_served_next(door: Door) -> None:
    door.come(256)
    door.serve()
    for client in door.come(200):
        client.close()
    (honest,) = door.come(1)
    door.now_s += 0.03
    assert door.serve() == ["127.0.0.1:456"]
    assert not is_turned_away(honest)


def test_a_full_line_makes_room_of_those_who_have_gone_and_turns_others_away(door: Door) -> None:
    door.come(256)
    door.serve()
    for client in door.come(256):
        client.close()
    (honest,) = door.come(1)
    assert not is_turned_away(honest)
    stay = door.come(255)
    (one_too_many,) = door.come(1)
    assert is_turned_away(one_too_many)
    for client in stay:
        client.close()
    assert is_turned_away(*door.come(1))  # nobody looks so soon after a look that found nobody
    door.now_s += 0.1
    assert not is_turned_away(*door.come(1))


def test_addresses_are_forgotten_and_who_waits_at_the_end_is_turned_away(door: Door) -> None:
    for number in range(50):
        door.come(1, f"10.0.0.{number}")
    door.serve()
    door.now_s += 10.0
    assert door.pace.next() is None
    assert repr(door.pace) == "Pace(0 addresses, 0 wait)"
    door.come(256)
    door.serve()
    *_, last = door.come(44)
    assert repr(door.pace) == "Pace(1 addresses, 44 wait)"
    door.pace.close()
    assert is_turned_away(last)
