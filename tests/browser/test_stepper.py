"""Choosing what goes next, forking and comparing, in a real JupyterLab, by keyboard."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.view_pages import JOB, check_accessible_in_both_themes, number, screenshots, the_view

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[..., Any]

# What each picture says; the other branch has one of its own.
PICTURES = """root => [...root.querySelectorAll('svg.sluice-picture')].map(svg =>
  [...svg.querySelectorAll('[data-state],text')].map(n => (n.dataset.state ?? '') + n.textContent).join())"""

BUSY = """
step, threads = simulation.step, set()
simulation.step = lambda *given: (threads.add(threading.current_thread().name), step(*given))[1]
heard = []
view.on_msg(lambda *given: heard.append(given))
while len(heard) < 5 and simulation.num_steps < 20_000:  # the clicks come while this cell is at work
    simulation.step()
print(simulation.num_steps, len(heard))
"""

STEPS = "print(stepper.num_steps, stepper.recording.moments[-1][1])"


@pytest.fixture
def notebook(notebook_in_shared_page: Open) -> Open:
    """Each test has a notebook and a kernel of its own; to load a JupyterLab for each took half of the time."""
    return notebook_in_shared_page


@pytest.mark.parametrize(("name", "kind"), [("QueueView", "queues"), ("PipelineMap", "map")])
def test_one_chooses_forks_and_compares(notebook: Open, name: str, kind: str) -> None:
    root = f"document.querySelector('[data-testid=sluice-{kind}]')"
    nb = notebook(
        f"stepper-{kind}.ipynb",
        [
            JOB,
            f"stepper = Stepper(job(range(90)), seed=7); view = {name}(stepper); view",
            STEPS,
            "print(stepper.change, stepper.fork_step, len(stepper.fork_recording))",
            "print(stepper.enabled()[1])",
        ],
    )
    nb.run(0)
    nb.run(1)
    view = the_view(nb, kind)
    choices = view.get_by_role("group", name="What can happen next")
    choices.get_by_role("button").nth(1).wait_for()
    second = nb.run(4).strip()
    assert choices.get_by_role("button").nth(1).inner_text() == f"2 {second}"
    view.focus()
    view.press("2")
    nb.until(f"() => {root}.dataset.at === '1'")
    assert nb.run(2).split(maxsplit=1) == ["1", second + "\n"]
    for at in range(2, 40):
        view.press(".")
        nb.until(f"() => {root}.dataset.at === '{at}'")
    for at in range(38, 9, -1):
        view.press("ArrowLeft")
        nb.until(f"() => {root}.dataset.at === '{at}'")
    view.press("f")
    nb.page.get_by_label("What to change").select_option("buffers")
    nb.page.get_by_label("To how much").fill("3")
    nb.page.get_by_label("To how much").press("Enter")
    nb.until(f"() => {root}.dataset.other === '40'")
    assert nb.run(3).split() == ["buffers", "3", "10", "40"]
    assert view.get_by_test_id("sluice-second").locator("svg").count() == 1
    assert "from step 10 with buffers 3" in view.inner_text()
    view.get_by_role("button", name="Run to the end").click()
    nb.until(f"() => +{root}.dataset.frames > 60 && +{root}.dataset.differs > 0")
    differs = number(view, "differs")
    view.get_by_role("slider").fill(str(differs))
    nb.until(f"() => {root}.dataset.at === '{differs}'")
    assert f"they differ from step {differs} on" in view.inner_text()
    first, other = view.evaluate(PICTURES)
    assert first != other
    view.get_by_role("slider").fill("9")
    nb.until(f"() => {root}.dataset.at === '9'")
    first, other = view.evaluate(PICTURES)
    assert first == other
    view.get_by_role("slider").fill(str(differs + 10))
    view.press("f")  # the form is looked at, too
    check_accessible_in_both_themes(nb, view)
    view.get_by_label("To how much").press("Escape")
    screenshots(nb, view, f"{kind}-stepper")
    view.get_by_label("Seed").fill("8")
    view.get_by_role("button", name="Reset").click()
    nb.until(f"() => {root}.dataset.frames === '1'")
    assert view.get_by_test_id("sluice-second").count() == 0


def test_a_run_is_kept_in_a_file_and_opened_again_by_keyboard(notebook: Open, tmp_path: Path) -> None:
    root = "document.querySelector('[data-testid=sluice-queues]')"
    nb = notebook(
        "stepper-file.ipynb",
        [
            JOB,
            "stepper = Stepper(job(range(90)), seed=7); view = QueueView(stepper); view",
            STEPS,
            "stepper.step(); stepper.run(30); stepper.fork(10, buffers=3); print(stepper.num_steps)",
        ],
    )
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "queues")
    assert nb.run(3).strip() == "31"
    nb.until(f"() => {root}.dataset.other === '32'")
    shown = view.evaluate(PICTURES)
    save, opener = (view.get_by_role("button", name=name) for name in ("Save as a file", "Open a file"))
    save.focus()
    with nb.page.expect_download() as download:
        save.press("Enter")
    assert download.value.suggested_filename == "sluice-run-31-steps.json"
    kept = tmp_path / "mine.json"
    download.value.save_as(kept)
    assert json.loads(kept.read_text(encoding="utf-8"))["fork"]["at_step"] == 10
    view.get_by_role("button", name="Reset").click()
    nb.until(f"() => {root}.dataset.frames === '1'")

    def choose(path: Path, key: str) -> None:
        opener.focus()
        with nb.page.expect_file_chooser() as chooser:
            opener.press(key)
        chooser.value.set_files(path)

    big = tmp_path / "big.json"
    big.write_bytes(b"[" * 2_000_001)
    poem = tmp_path / "poem.json"
    poem.write_bytes(b"\xff\xfeno run at all")
    for wrong, words in ((big, "big.json: too big for a run, 2.0 MB"), (poem, "poem.json: this text is not a run")):
        choose(wrong, "Enter")
        alert = view.get_by_role("alert").filter(has_text=words)
        alert.wait_for()
        check_accessible_in_both_themes(nb, view)
        assert nb.run(2).split()[0] == "0"
    choose(kept, "Space")
    nb.until(f"() => {root}.dataset.frames === '32' && {root}.dataset.other === '32'")
    nb.until(f"() => {root}.dataset.at === '31'")
    assert view.get_by_role("alert").count() == 0
    assert view.evaluate(PICTURES) == shown
    assert nb.run(2).split()[0] == "31"
    assert view.get_by_label("Seed").input_value() == "7"
    check_accessible_in_both_themes(nb, view)


def test_a_click_while_a_cell_steps_a_simulation_waits_for_the_cell(notebook: Open) -> None:
    root = "document.querySelector('[data-testid=sluice-queues]')"
    nb = notebook(
        "busy.ipynb",
        [
            JOB,
            "simulation = Simulation(job(range(40_000)), seed=1); view = QueueView(simulation); view",
            BUSY,
            "print(simulation.num_steps, len(view.recording) - 1, threads, view.error)",
        ],
    )
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "queues")
    view.focus()
    view.press(".")
    nb.until(f"() => {root}.dataset.at === '1'")
    nb.start(2)
    for _ in range(5):
        view.get_by_test_id("sluice-ten").evaluate("button => button.click()")
        nb.page.wait_for_timeout(100)
    nb.until(f"() => {root}.dataset.frames === '52'")
    (said,) = [output["text"] for output in nb.outputs(2)]
    num_steps, num_heard = map(int, said.split())
    assert num_heard == 5  # while the cell was at work
    assert nb.run(3).split() == [str(num_steps + 50), "51", "{'MainThread'}"]
