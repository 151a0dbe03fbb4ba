"""The page of the cluster: it is what the command writes, and its pictures show what their words say."""

from __future__ import annotations

from pathlib import Path

from course.figures.cluster_page import CLUSTER_FILES, write_cluster_page

STORED = Path(__file__).parents[3] / "course" / "site"


def test_the_stored_page_and_its_pictures_are_those_the_command_writes(tmp_path: Path) -> None:
    page = write_cluster_page(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(CLUSTER_FILES)
    for name in CLUSTER_FILES:
        assert (tmp_path / name).read_text() == (STORED / name).read_text(), name
    text = page.read_text()
    assert "1 gone" in text
    assert "whose place another has taken: resource-manager of epoch 1" in text
    lost, led, leaderless = ((tmp_path / f"cluster-{name}.svg").read_text() for name in ("lost", "led", "leaderless"))
    assert "at most attempt 1" in lost
    assert "▶ leads, epoch 2" in led
    assert "stored; nobody leads it now" in leaderless
    assert "given to numbers" in leaderless
