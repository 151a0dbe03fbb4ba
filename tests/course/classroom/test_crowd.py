"""Two hundred learners at once, and a server that is killed while they speak: no event is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course.classroom.class_file import ClassFile
from tests.support.class_ends import T0, Client, checked, secret

ROOT = Path(__file__).resolve().parents[3]
LEARNERS, POSTS, EVENTS = 200, 4, 3


def event(learner, n):
    return checked(n=learner * 1000 + n, time=T0 - 1000 + n)


def kept(path):
    """The codes that each learner's events name, in the file."""
    with ClassFile(path) as file:
        handles = {row.id: row.handle for row in file.learners()}
        found = {handle: [] for handle in handles.values()}
        for row in file.events_after(0):
            found[handles[row.learner]].append(int(row.body["code_hash"][7:], 16))
    return found


@pytest.mark.slow
def test_two_hundred_learners_post_and_every_event_is_there(room):
    async def learner(n):
        client = Client(room.port)
        status, _ = await client.post("/api/join", {"code": room.code, "handle": f"learner{n}", "secret": secret(n)})
        assert status == 200
        for post in range(POSTS):
            events = [event(n, post * EVENTS + at) for at in range(EVENTS)]
            status, said = await client.post("/api/events", {"now": T0, "events": events}, secret(n))
            assert (status, said["new"]) == (200, EVENTS)
        client.close()

    async def all_of_them():
        await asyncio.gather(*(learner(n) for n in range(LEARNERS)))

    asyncio.run(all_of_them())
    assert kept(room.path) == {f"learner{n}": [n * 1000 + at for at in range(POSTS * EVENTS)] for n in range(LEARNERS)}
    model = room.model()
    assert [len(model["learners"]), model["num_here"]] == [LEARNERS, LEARNERS]
    assert sum(cell["attempts"] for each in model["learners"] for cell in each["cells"]) == LEARNERS * POSTS * EVENTS
    assert room.room.scribe.num_commits < LEARNERS * (POSTS + 1), "those who wait together are committed together"


class Server:
    """`sluice class serve` as a process."""

    def __init__(self, path, port=0):
        command = [sys.executable, "-m", "course.cli", "class", "serve", "--db", str(path), "--port", str(port)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if "Ctrl-C" in line:
                break
        assert self.process.poll() is None, self.said
        words = next(line for line in self.said if "sluice join" in line).split()
        self.code, _, address = words[4].partition("@")
        self.port = int(address.split(":")[1])

    def end(self, number):
        self.process.send_signal(number)
        rest = self.process.communicate(timeout=120)[0]
        return self.process.returncode, rest


@pytest.mark.slow
def test_a_killed_server_has_lost_nothing_it_acknowledged(tmp_path):
    """Twenty learners post without a pause; the server is killed in the middle, twice, and started again."""
    path = tmp_path / "class.sqlite"
    server = Server(path)
    acknowledged = {n: set() for n in range(20)}
    sent = dict.fromkeys(acknowledged, 0)
    num_acknowledged = 0

    async def learner(n, client, wanted):
        nonlocal num_acknowledged
        while num_acknowledged < wanted:
            number, sent[n] = sent[n], sent[n] + 1
            status, said = await client.post("/api/events", {"now": T0, "events": [event(n, number)]}, secret(n))
            if status == 429:
                await asyncio.sleep(0.05)
                continue
            assert (status, said["new"] + said["known"]) == (200, 1)
            acknowledged[n].add(n * 1000 + number)
            num_acknowledged += 1

    async def crowd(wanted):
        clients = {n: Client(server.port) for n in acknowledged}
        for n, client in clients.items():
            status, said = await client.post("/api/join", {"code": server.code, "handle": f"l{n}", "secret": secret(n)})
            assert status == 200, said
        tasks = [asyncio.create_task(learner(n, client, 10**9)) for n, client in clients.items()]
        while num_acknowledged < wanted:
            await asyncio.sleep(0.005)
        os.kill(server.process.pid, signal.SIGKILL)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.IncompleteReadError | ConnectionError) for end in ends), ends
        for client in clients.values():
            client.close()

    try:
        for wanted in (150, 300):
            asyncio.run(crowd(wanted))
            server.process.communicate(timeout=120)
            server = Server(path, server.port)  # the same port, at once
            found = kept(path)
            assert all(acknowledged[n] <= set(found[f"l{n}"]) for n in acknowledged)
            assert all(len(codes) == len(set(codes)) for codes in found.values())
        status, said = server.end(signal.SIGINT)
        assert (status, "The class has ended; everything is in" in said) == (0, True)
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()
