"""The text twin says what the model says."""

from __future__ import annotations

import pytest

from widgets import pipeline_text
from widgets.frames import PROGRESS
from widgets.text import (
    PROGRESS_SYMBOL,
    PROGRESS_WORD,
    channel_text,
    failure_text,
    pipeline_status,
    progress_words,
    queue_text,
)


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
    assert lines[0] == "A job: 4 tasks, 4 channels"
    assert lines[1] == "step 0 (start) · 12 of 12 segments of 64 B free"
    assert lines[3].strip() == "buffers of timestamps-0 → window: 0 home, 0 queued, 0 being read, limit 6"
    assert lines[4].strip() == "[0] (empty) → window → sink-0  backlog 0  sent 0 B"


def test_the_words_tell_the_step_and_what_was_done(recording):
    model = recording.model(9)
    assert model["action"].startswith("step ")
    assert pipeline_text(model).splitlines()[1].startswith(f"step 9 ({model['action'][5:]}) · ")


def test_the_words_tell_why_a_job_failed(recording):
    text = pipeline_text(recording.model(9), error="ValueError: no\n  runway")
    assert text.splitlines()[2] == "✗ the job failed: ValueError: no runway"
    assert "failed" not in pipeline_text(recording.model(9))


def test_a_long_reason_is_cut_where_it_must_be():
    assert failure_text("x" * 500, most=40) == "✗ the job failed: " + "x" * 21 + "…"


def test_every_state_of_a_task_has_a_sign_and_a_word(recording):
    assert set(PROGRESS_WORD) == set(PROGRESS_SYMBOL) == set(PROGRESS)
    assert progress_words({"progress": "made"}) == "▶ moving"


def test_the_words_of_a_channel_say_what_its_picture_says(recording):
    seen = set()
    for index in range(len(recording)):
        model = recording.model(index)
        for channel in model["channels"]:
            words = channel_text(channel, model)
            assert f"  backlog {channel['backlog_buffers']}  sent {channel['num_bytes_total']} B" in words
            is_open = bool(channel["queue"]) and not channel["queue"][-1]["is_finished"]
            assert ("tail open" in words) == is_open
            seen.add(is_open)
    assert seen == {True, False}


def test_every_step_changes_the_words(recording):
    texts = [pipeline_text(recording.model(index)) for index in range(len(recording))]
    assert len(set(texts)) == len(texts)
    assert max(len(line) for text in texts for line in text.splitlines()) <= 110


def test_the_status_is_one_sentence(recording):
    assert pipeline_status(recording.model(0)) == (
        "step 0 (start): tasks 4 idle; buffers 0 queued, 0 being read, 0 home; 12 of 12 segments free"
    )
