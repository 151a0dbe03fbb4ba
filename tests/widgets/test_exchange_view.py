"""The pair of TaskManagers: what a simulation has on its wire, and what numbers say of a real one."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.drivers.simulation import Way
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from widgets import ExchangeView


def two_places(num_records=60, function=str):
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=40, source_batch=2), 2)
    environment.from_collection(range(num_records)).rebalance().map(function).rebalance().sink(bool)
    return environment


def model_of(source):
    view = ExchangeView(source)
    try:
        return view.model(), repr(view)
    finally:
        view.close()


def test_every_frame_on_the_wire_is_there_in_its_order():
    kinds = set()
    with Simulation(two_places(), seed=3, num_task_managers=2, max_delay_ms=0.05) as simulation:
        while simulation.step() is not None:
            model, text = model_of(simulation) if simulation.num_steps % 7 == 0 else (None, "")
            if model is None:
                continue
            for connection, link in zip(model["connections"], simulation.links.values(), strict=True):
                for way, name in ((Way.REQUESTS, "requests"), (Way.RESPONSES, "responses")):
                    frames, messages = connection[name], link.messages(way)
                    assert len(frames) == len(messages)
                    for frame, message in zip(frames, messages, strict=True):
                        kinds.add(frame["kind"])
                        if frame["kind"] in ("buffer", "event"):
                            assert (frame["sequence"], frame["num_bytes"]) == (
                                message.sequence_number,
                                len(message.payload),
                            )
                            assert f"{frame['kind']} {frame['sequence']} of " in text
    assert kinds == {"buffer", "event", "credit", "request", "other"}


def test_numbers_tell_what_is_on_a_real_wire_and_at_the_end_it_is_empty():
    gate = threading.Event()
    with ThreadedRun(two_places(4_000, lambda n: gate.wait(120) and str(n)), num_task_managers=2) as run:
        run.start()
        view = ExchangeView(run)
        first = view.model()
        assert all(frame["kind"] in ("buffer", "credit") for c in first["connections"] for frame in c["responses"])
        gate.set()
        run.join(120)
        last = view.model()
        view.close()
    assert [(c["responses"], c["requests"]) for c in last["connections"]] == [([], [])] * 2
    assert all(channel["is_over"] for connection in last["connections"] for channel in connection["channels"])


def test_each_numbers_wire_agrees_with_the_frames_of_a_simulation():
    """What the two ends count comes to the same data on the wire as the wire itself has."""
    with Simulation(two_places(), seed=5, num_task_managers=2, max_delay_ms=0.05) as simulation:
        view = ExchangeView(simulation)
        num_compared = 0
        while simulation.step() is not None:
            snapshot = simulation.snapshot()
            seen = view.model_of(snapshot, "", view._known)
            counted = view.model_of(replace(snapshot, wires=()), "", view._known)
            for wire, ends in zip(seen["connections"], counted["connections"], strict=True):
                if any(channel["is_over"] for channel in wire["channels"]):
                    continue
                sent = [frame for frame in wire["responses"] if frame["kind"] in ("buffer", "event")]
                data = sorted((frame["channel"], frame["sequence"]) for frame in sent)
                assert sorted((f["channel"], f["sequence"]) for f in ends["responses"]) == data
                num_compared += len(data)
        view.close()
    assert num_compared > 30


def test_of_a_running_job_what_crossed_a_moment_ago_is_seen():
    """A look finds a real wire empty nearly always, and yet all that crossed between two looks is named."""
    with Simulation(two_places(), seed=5, num_task_managers=2) as simulation:
        moments = [replace(simulation.snapshot(), wires=(), time_ms=0.0)]
        simulation.run(max_steps=60)
        while len(moments) < 4:  # steps until nothing is on its way
            simulation.step()
            if not any(wire.responses or wire.requests for wire in simulation.snapshot().wires):
                moments.append(replace(simulation.snapshot(), wires=(), time_ms=100.0 * len(moments)))
        run = Looked(moments)
        view = ExchangeView(run)
        assert all(frame_numbers(connection) == [] for connection in view.model()["connections"])
        credit = []
        for place in (1, 2, 3):
            run.at = place
            model = view.model()
            now, before = moments[place], moments[max(0, place - 2)]
            came = sum(
                channel.num_received - old.num_received
                for gate, other in zip(now.gates, before.gates, strict=True)
                for channel, old in zip(gate.channels, other.channels, strict=True)
            )
            total = sum(len(each["responses"]) + each["num_more_responses"] for each in model["connections"])
            assert (total, model["lately_ms"]) == (came, now.time_ms - before.time_ms)
            assert place > 1 or came > 5
            words = f"on the wires in the last {model['lately_ms'] / 1000:.1f} s: {came} frames went to consumers, "
            assert words in view.facts(model)["status"]
            assert f"on the wires in the last {model['lately_ms'] / 1000:.1f} s" in view.svg_of(model, "", "")
            credit += [frame["num_credits"] for each in model["connections"] for frame in each["requests"]]
        assert credit
        assert min(credit) > 0
        view.close()


def frame_numbers(connection):
    return [frame["sequence"] for frame in connection["responses"]]


class Looked:
    """A job that runs by itself, at a moment that we choose."""

    is_done = False
    at = 0

    def __init__(self, moments):
        self.moments = moments

    def snapshot(self):
        return self.moments[self.at]


def test_without_a_wire_it_says_why():
    with Simulation(two_places()) as simulation:
        model, text = model_of(simulation)
    assert model["connections"] == []
    assert "no wire. Run the job on two TaskManagers" in text


def test_a_recording_keeps_the_wire(tmp_path):
    from widgets import Recording

    with Simulation(two_places(), seed=3, num_task_managers=2, max_delay_ms=0.05) as simulation:
        recording = Recording.of(simulation, max_steps=40)
    recording.save(tmp_path / "run.json")
    again = Recording.load(tmp_path / "run.json")
    assert [moment[0].wires for moment in again.moments] == [moment[0].wires for moment in recording.moments]
    assert any(wire.responses for moment in again.moments for wire in moment[0].wires)


def test_an_unknown_option_is_refused():
    with Simulation(two_places(), num_task_managers=2) as simulation, pytest.raises(LocalUsageError, match="no option"):
        ExchangeView(simulation, chanel=1)
