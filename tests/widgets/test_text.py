"""The text twin says what the model says."""

from __future__ import annotations

import pytest

from widgets import pipeline_text
from widgets.text import pipeline_status, queue_text


def entry(written=0, capacity=64, is_event=False):
    return {"written_bytes": written, "capacity_bytes": capacity, "is_event": is_event, "is_finished": True}


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "(empty)"),
        ([entry(64)], "|█|"),
        ([entry(1)], "|▁|"),
        ([entry(64), entry(32)], "|▄█|"),
        ([entry(64), entry(4, 4, is_event=True)], "|E█|"),
        ([entry(64)] * 10, "+2|████████|"),
    ],
)
def test_a_queue_is_drawn_with_its_head_on_the_right(entries, words):
    assert queue_text({"queue": entries}) == words


def test_the_start_of_a_job_in_words(recording):
    lines = pipeline_text(recording.model(0), "A job").splitlines()
    assert lines[0] == "A job: 4 tasks, 4 channels, step 0 (start)"
    assert lines[1] == "pool: 12 of 12 segments of 64 B free"
    assert lines[3].strip() == "buffers of timestamps-0 → window: 0 home, 0 queued, 0 being read, limit 6"
    assert lines[4].strip() == "[0] (empty) → window → sink-0  backlog 0"


def test_the_words_tell_the_step_and_what_was_done(recording):
    model = recording.model(9)
    assert pipeline_text(model).splitlines()[0].endswith(f"step 9 ({model['action']})")


def test_every_step_changes_the_words(recording):
    texts = [pipeline_text(recording.model(index)) for index in range(len(recording))]
    assert len(set(texts)) == len(texts)
    assert max(len(line) for text in texts for line in text.splitlines()) <= 110


def test_the_status_is_one_sentence(recording):
    assert pipeline_status(recording.model(0)) == (
        "step 0 (start): tasks 4 idle; buffers 0 queued, 0 being read, 0 home; 12 of 12 segments free"
    )
