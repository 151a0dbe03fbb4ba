"""What a moving view costs: frames seen in a browser, bytes of a frame, CPU of the kernel for a frame.

    python -m tests.bench.widgets                      a table, for 4, 64 and 512 channels
    python -m tests.bench.widgets --seconds 10 --view PipelineMap --json -

A recorded run is played to a real JupyterLab in a real Chromium, a moment for each look of the sampler, so that each
frame differs from the last and the CPU of the kernel is that of the view alone: no job runs. What the engine loses
while it is looked at is measured apart: a job on threads, with the view hidden and shown in turn, and each turn
compared with those before and after it. The job has the buffers of `Config()`; or, as in a lesson, buffers of 64 B,
where threads hand over to each other for every second record. And the kernel goes where the system puts it, sharing
all cores with the browser; or it is kept on one core, which leaves the browser the others. How much of the time the
kernel worked tells what it lost to the sharing. Last, how long it takes until a running task is slowed after the
slider moves, seen from the page.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.lab_pages import GET_ONE, chromium, close_kernels, opened, running_chromium, running_lab  # noqa: E402

FORMAT = "sluice-bench-widgets/3"
SHAPES = {4: (2, 2), 64: (8, 8), 512: (16, 32)}
GOALS = {4: "28 of 30 frames, 1.5 ms, 2000 B", 64: "25 of 30 frames", 512: ""}

SETUP = """
import os, time, resource
from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader
import widgets
from widgets import *

def small(num_channels):
    return Config(segment_size_bytes=64, num_buffers=16 * num_channels + 64, source_batch=4)

def job(producers, consumers, num_records, function=str, config=None):
    env = StreamEnvironment(config or small(producers * consumers), producers)
    (env.source(lambda i, n: IterableReader(range(i, num_records, n))).map(function).rebalance()
        .sink(bool).set_parallelism(consumers))
    return env

class Played:
    is_done = False
    def __init__(self, recording):
        self._moments, self._at = [snapshot for snapshot, _ in recording.moments], 0
    def snapshot(self):
        self._at += 1
        return self._moments[self._at % len(self._moments)]
"""

PLAYED = """
producers, consumers, name = {producers}, {consumers}, {name!r}
simulation = Simulation(job(producers, consumers, 200_000), seed=1, check_every=0)
simulation.run(max_steps=40 * producers)
recording = Recording.of(simulation, max_steps=400)
view = getattr(widgets, name)(Played(recording)); view
"""

COST = "used = resource.getrusage(resource.RUSAGE_SELF); print(used.ru_utime + used.ru_stime, view.sampler.num_sent)"

LIVE = """
run = ThreadedRun(job(2, 2, 10**9, lambda n: n, {config})).start()
view = getattr(widgets, {name!r})(run); view
"""
ONE_CORE = """
core = {min(os.sched_getaffinity(0))}
for thread in os.listdir("/proc/self/task"): os.sched_setaffinity(int(thread), core)
"""
JOBS = {"buffers of 32 KiB": "Config()", "buffers of 64 B": "small(4)"}
PLACES = {"cores shared with the browser": "", **({"kernel on one core": ONE_CORE} if sys.platform == "linux" else {})}
FLOWED = """
print(time.monotonic(), sum(task.num_records_in for task in run.snapshot().tasks), time.process_time(),
      view.sampler.num_sent)
"""


def spread(found: list[float]) -> str:
    """The median, what the middle half lies between, and the extremes."""
    low, middle, high = statistics.quantiles(found, n=4, method="inclusive")
    return f"{middle:.3f} [{low:.2f} .. {high:.2f}], all {min(found):.2f} .. {max(found):.2f}"


def played(page: Any, lab: Any, view: str, channels: int, seconds: float) -> dict[str, float]:
    """One recording played for some seconds."""
    producers, consumers = SHAPES[channels]
    received: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    cells = [SETUP, PLAYED.format(producers=producers, consumers=consumers, name=view), COST]
    nb = opened(page, lab, f"played-{view}-{channels}.ipynb", cells)
    nb.run(0)
    nb.run(1)
    root = page.locator(".sluice").first
    root.wait_for()
    root.scroll_into_view_if_needed()
    nb.until("() => +document.querySelector('.sluice').dataset.painted > 10")
    cpu, sent = map(float, nb.run(2).split())
    started, painted, first = time.monotonic(), int(root.get_attribute("data-painted") or 0), len(received)
    page.wait_for_timeout(seconds * 1_000)
    passed, shown = time.monotonic() - started, int(root.get_attribute("data-painted") or 0) - painted
    num_bytes = sum(received[first:])
    cpu_after, sent_after = map(float, nb.run(2).split())
    # The second look at the counters is a cell run, too; an idle kernel's heart beats are next to nothing.
    num_sent = sent_after - sent
    return {
        "shown_per_s": shown / passed,
        "sent_per_s": num_sent / passed,
        "cpu_ms_per_frame": 1_000 * (cpu_after - cpu) / max(1, num_sent),
        "bytes_per_frame": num_bytes / max(1, shown),
    }


def kept(page: Any, lab: Any, view: str, config: str, setup: str, seconds: float, rounds: int) -> dict[str, Any]:
    """What a job on threads does while the view is shown: its throughput as ratios to that while it is hidden, and how
    much of the time the kernel worked, both ways."""
    cells = [SETUP + setup, LIVE.format(name=view, config=config), FLOWED, "run.cancel()"]
    nb = opened(page, lab, f"live-{view}.ipynb", cells)
    nb.run(0)
    nb.run(1)
    root = page.locator(".sluice").first
    root.wait_for()
    worked: dict[str, list[float]] = {"shown": [], "hidden": []}

    def rate(which: str) -> float:
        root.evaluate("(node, display) => { node.style.display = display; }", "" if which == "shown" else "none")
        if which == "shown":
            root.scroll_into_view_if_needed()
        page.wait_for_timeout(300)  # until the page has said that the view is seen, or is not
        before = [float(word) for word in nb.run(2).split()]
        page.wait_for_timeout(seconds * 1_000)
        after = [float(word) for word in nb.run(2).split()]
        passed_s, num_records, cpu_s, num_sent = (b - a for a, b in zip(before, after, strict=True))
        assert (num_sent > 1) is (which == "shown"), f"{which}: {num_sent:g} frames were sent"
        worked[which].append(cpu_s / passed_s)
        return num_records / passed_s

    ratios = []
    before = rate("hidden")
    for _ in range(rounds):
        shown, after = rate("shown"), rate("hidden")
        ratios.append(shown / statistics.mean([before, after]))
        before = after
    nb.run(3)
    return {"ratios": ratios, "worked": {which: statistics.median(each) for which, each in worked.items()}}


def felt(page: Any, lab: Any, rounds: int) -> list[float]:
    """From the slider to the picture that shows the task slowed, in ms; the kernel knows it before."""
    start = "run = ThreadedRun(job(2, 2, 10**9, lambda n: n)).start()\nview = JobView(run); view"
    nb = opened(page, lab, "felt.ipynb", [SETUP, start, "run.cancel()"])
    nb.run(0)
    nb.run(1)
    root = page.locator(".sluice").first
    root.wait_for()
    root.scroll_into_view_if_needed()
    nb.until("() => +document.querySelector('.sluice').dataset.painted > 5")
    times = []
    for number in range(rounds):
        place, words = (5, "rests 20 ms") if number % 2 == 0 else (4, "rests 10 ms")
        times.append(
            page.evaluate(
                """async ([place, words]) => {
                  const root = document.querySelector('.sluice');
                  const slider = root.querySelector('[data-testid=sluice-slow]');
                  const start = performance.now();
                  slider.value = place; slider.dispatchEvent(new Event('input', { bubbles: true }));
                  while (!root.querySelector('svg').textContent.includes(words) && performance.now() - start < 5000)
                    await new Promise(requestAnimationFrame);
                  return performance.now() - start; }""",
                [place, words],
            )
        )
        page.wait_for_timeout(300)
    nb.run(2)
    return times


def main() -> int:
    """Measure, print a table, and keep the figures."""
    parser = argparse.ArgumentParser(prog="make bench-widgets", description=__doc__.split("\n")[0])
    parser.add_argument("--view", action="append", help="a view, several times for several (QueueView and PipelineMap)")
    parser.add_argument("--channels", type=int, action="append", choices=sorted(SHAPES), help="4, 64 or 512 (all)")
    parser.add_argument("--seconds", type=float, default=6.0, help="for each figure (6)")
    parser.add_argument("--rounds", type=int, default=9, help="shown and hidden in turn, at least 2 (9)")
    parser.add_argument("--json", metavar="FILE", help="also write all of it there, - for the terminal")
    options = parser.parse_args()
    if options.rounds < 2 or options.seconds <= 0:
        parser.error("--rounds must be at least 2, and --seconds more than 0")
    program = chromium()
    if program is None:
        print(GET_ONE, file=sys.stderr)
        return 3
    found: dict[str, Any] = {"format": FORMAT, "cores": os.cpu_count(), "seconds": options.seconds, "played": []}
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("home", "root", "chromium")]
        for place in places:
            place.mkdir()
        with running_lab(places[0], places[1]) as lab, running_chromium(places[2], program) as context:
            print(f"{'view':<14}{'channels':>9}{'shown/s':>9}{'CPU ms/frame':>14}{'bytes/frame':>13}  goal")
            for view in options.view or ["QueueView", "PipelineMap"]:
                for channels in options.channels or sorted(SHAPES):
                    page = context.new_page()
                    row = played(page, lab, view, channels, options.seconds)
                    page.close()
                    close_kernels(lab)
                    found["played"].append({"view": view, "channels": channels, **row})
                    print(
                        f"{view:<14}{channels:>9}{row['shown_per_s']:>9.1f}{row['cpu_ms_per_frame']:>14.2f}"
                        f"{row['bytes_per_frame']:>13.0f}  {GOALS[channels]}",
                        flush=True,
                    )
            page = context.new_page()
            found["felt_ms"] = felt(page, lab, 2 * options.rounds)
            close_kernels(lab)
            words = f"{statistics.median(found['felt_ms']):.0f} ms, at most {max(found['felt_ms']):.0f}"
            print(f"from the slider to the picture: {words} (goal 200)", flush=True)
            print("throughput while a view is shown, of that while it is hidden (goal 0.95):", flush=True)
            found["kept"] = {}
            for place, setup in PLACES.items():
                for job, config in JOBS.items():
                    each = kept(page, lab, "QueueView", config, setup, options.seconds / 2, options.rounds)
                    found["kept"][f"{job}, {place}"] = each
                    hidden, shown = each["worked"]["hidden"], each["worked"]["shown"]
                    words = f"the kernel worked {shown:.2f} of the time, hidden {hidden:.2f}"
                    print(f"    {job}, {place}: {spread(each['ratios'])}; {words}", flush=True)
                    close_kernels(lab)
            page.close()
    if options.json:
        text = json.dumps(found, indent=1)
        print(text) if options.json == "-" else Path(options.json).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
