"""Who owes five answers is killed, and nobody else: counted in questions, not in time."""

from __future__ import annotations

import os
import signal

from refimpl.drivers.processes import ChildProcess, ProcessHeartbeats
from tests.support.driver_rig import nothing_left
from tests.support.polling import until


def test_a_stopped_process_is_killed_at_the_sixth_question_and_the_others_live() -> None:
    gone: list[ChildProcess] = []
    with nothing_left():
        children = [ChildProcess(number, lambda *_: None, gone.append) for number in range(2)]
        heartbeats = ProcessHeartbeats(lambda: children, 3600.0)
        heartbeats.ask()
        until(lambda: all(each.has_answered for each in children))
        os.kill(children[1].process.pid, signal.SIGSTOP)
        for _ in range(6):
            assert not children[1].is_lost
            answer = children[0].ask(b"")
            heartbeats.ask()
            until(answer.done)
        heartbeats.ask()
        assert children[1].is_lost
        until(lambda: gone == [children[1]])
        assert "did not answer for 3600 s, and was ended" in str(children[1].death())
        assert not children[0].is_lost
        for each in children:
            each.close()
            each.end(0.0)


def test_a_process_that_has_not_come_up_has_as_long_as_it_takes_by_default() -> None:
    with nothing_left():
        child = ChildProcess(0, lambda *_: None, lambda _: None)
        os.kill(child.process.pid, signal.SIGSTOP)
        heartbeats = ProcessHeartbeats(lambda: [child], 25.0)  # half of the default: ten questions in place of five
        for _ in range(10):
            heartbeats.ask()
            assert not child.is_lost
        assert not child.has_answered
        heartbeats.ask()
        assert child.is_lost
        child.end(0.0)
