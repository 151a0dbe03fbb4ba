"""What a moving view costs: frames seen in a browser, bytes of a frame, CPU of the kernel for a frame.

    python -m tests.bench.widgets                      a table, for 4, 64 and 512 channels
    python -m tests.bench.widgets --seconds 10 --view PipelineMap --json -

A recorded run is played to a real JupyterLab in a real Chromium, a moment for each look of the sampler, so that each
frame differs from the last and the CPU of the kernel is that of the view alone: no job runs. What the engine loses
while it is looked at is measured apart: the same job on threads, with the view hidden; shown; hidden while the kernel
sends it as many frames, as to a browser on another machine; and hidden while the browser draws as many of a recording,
of which the kernel knows nothing. So one sees what looking costs the engine, and what any picture that moves costs a
machine with few cores. And how long it takes until a running task is
slowed after the slider moves, seen from the page.
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
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from lab_pages import GET_ONE, chromium, close_kernels, opened, running_chromium, running_lab  # noqa: E402

FORMAT = "sluice-bench-widgets/2"
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

def job(producers, consumers, num_records, function=str):
    config = Config(segment_size_bytes=64, num_buffers=16 * producers * consumers + 64, source_batch=4)
    env = StreamEnvironment(config, producers)
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
run = ThreadedRun(job(2, 2, 10**9, lambda n: n)).start()
view = getattr(widgets, {name!r})(run); view
"""
RECORDED = """
drawn = getattr(widgets, {name!r})(Recording.of(Simulation(job(2, 2, 10**6)), max_steps=300)); drawn
"""
DRAW = """root => {
  const range = root.querySelector('[data-testid=sluice-range]');
  window.drawing = setInterval(() => {
    range.value = (+range.value + 1) % (+range.max + 1);
    range.dispatchEvent(new Event('input', { bubbles: true }));
  }, 1000 / 30);
}"""
STILL = ".sluice * { transition: none !important; }"  # nothing moves between two frames, as in a live view
WHICH = {
    "shown": "with a view shown, of that without (goal 0.95)",
    "sent": "with as many frames sent to a page that does not draw them",
    "drawn": "with a recording drawn that the kernel knows nothing of",
}
FLOWED = "print(time.monotonic(), sum(task.num_records_in for task in run.snapshot().tasks), view.sampler.num_sent)"


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


def kept(page: Any, lab: Any, view: str, seconds: float, rounds: int) -> dict[str, list[float]]:
    """Throughput of a job on threads with the view shown, and with a recording drawn, as ratios to neither."""
    cells = [SETUP, RECORDED.format(name=view), LIVE.format(name=view), FLOWED, "run.cancel()",
             "view.sampler.watch(True)", "view.sampler.watch(False)"]  # fmt: skip
    nb = opened(page, lab, f"live-{view}.ipynb", cells)
    for number in range(3):
        nb.run(number)
    page.add_style_tag(content=STILL)
    drawn, shown = page.locator(".sluice").nth(0), page.locator(".sluice").nth(1)
    shown.wait_for()

    def rate(which: str) -> float:
        for root, name in ((drawn, "drawn"), (shown, "shown")):
            root.evaluate("(node, display) => { node.style.display = display; }", "" if which == name else "none")
        if which == "drawn":
            drawn.scroll_into_view_if_needed()
            drawn.evaluate(DRAW)
        elif which == "shown":
            shown.scroll_into_view_if_needed()
        page.wait_for_timeout(300)  # the page says by itself whether the view is seen; what is said here comes after it
        nb.run(5 if which in ("shown", "sent") else 6)
        start, before, sent_before = map(float, nb.run(3).split())
        page.wait_for_timeout(seconds * 1_000)
        end, after, sent_after = map(float, nb.run(3).split())
        page.evaluate("() => clearInterval(window.drawing)")
        num_sent = sent_after - sent_before
        assert (num_sent > 1) is (which in ("shown", "sent")), f"{which}: {num_sent:g} frames were sent"
        return (after - before) / (end - start)

    ratios: dict[str, list[float]] = {which: [] for which in WHICH}
    for number in range(rounds):
        order = ("hidden", *WHICH)[:: -1 if number % 2 else 1]
        found = {which: rate(which) for which in order}
        for which, each in ratios.items():
            each.append(found[which] / found["hidden"])
    nb.run(4)
    return ratios


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
    parser.add_argument("--rounds", type=int, default=5, help="each way in turn (5)")
    parser.add_argument("--json", metavar="FILE", help="also write all of it there, - for the terminal")
    options = parser.parse_args()
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
            found["kept"] = kept(page, lab, "QueueView", options.seconds / 2, options.rounds)
            for which, words in WHICH.items():
                each = found["kept"][which]
                print(f"throughput {words}: {statistics.median(each):.3f} [{min(each):.2f} .. {max(each):.2f}]")
            page.close()
    if options.json:
        text = json.dumps(found, indent=1)
        print(text) if options.json == "-" else Path(options.json).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
