"""The measurement of a class's traffic: what the relay counts is what went through it, and the sums add up."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from course.learner.courier import ASK_S
from tests.bench.class_traffic import Relay, main


def test_the_relay_counts_what_goes_each_way():
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay = Relay(server.getsockname()[1])

        def answer() -> None:
            client, _ = server.accept()
            with client:
                while client.recv(1024):
                    pass
                client.sendall(b"a" * 70_000)

        thread = threading.Thread(target=answer)
        thread.start()
        with socket.create_connection(("127.0.0.1", relay.port)) as client:
            client.sendall(b"b" * 1234)
            client.shutdown(socket.SHUT_WR)
            got = 0
            while piece := client.recv(65_536):
                got += len(piece)
        thread.join()
        relay.close()
    assert (got, relay.counts) == (70_000, [1234, 70_000])


@pytest.mark.slow
def test_what_each_costs_adds_up_to_what_the_room_costs(capsys):
    assert main(["--learners", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["what"] for each in found["costs"]] == ["joining", "telling of a check", "asking for news"]
    assert all(each["bytes_to"] > 0 and each["bytes_back"] > 0 for each in found["costs"])
    _, telling, asking = found["costs"]
    assert telling["bytes_to"] > asking["bytes_to"]  # a check has a body
    per_second = 3 / ASK_S
    assert found["kilobytes_per_second"] * 1000 == pytest.approx(
        per_second * (asking["bytes_to"] + asking["bytes_back"])
    )
    assert found["core_share"] * 1000 == pytest.approx(per_second * asking["core_ms"])


def test_the_table_says_what_a_room_costs(capsys):
    assert main(["--learners", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 5
    assert said[-1].startswith("2 learners who ask every 5 s: ")
