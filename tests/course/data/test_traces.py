"""A trace in files, and what Spark says of it: the same as plain Python says of what the same run noted in memory."""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from course.cli import main
from course.cli.trace_command import _NAMES
from course.data import trace_queries
from course.data.answers import as_json, as_table
from course.data.trace_files import COLUMNS, FileTrace, TraceFileError, table_of
from course.data.trace_queries import QUESTIONS, TraceMissingError, load_trace
from refimpl.column_trace import ColumnTrace
from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.trace import Trace

ROOT = Path(__file__).resolve().parents[3]
CONFIG = Config(segment_size_bytes=32, num_buffers=60, buffers_per_channel=1, floating_buffers_per_gate=1)


def job(results: list[object], num_records: int = 150) -> StreamEnvironment:
    environment = StreamEnvironment(CONFIG, 2)
    environment.from_collection(range(num_records)).map(lambda n: n + 1).rebalance().sink(results.append)
    return environment


def simulated(trace: Trace) -> None:
    """Always the same steps: two TaskManagers, with credit that is short."""
    Simulation(job([]), seed=3, check_every=0, trace=trace, num_task_managers=2, max_delay_ms=0.2).run()


@pytest.fixture(scope="module")
def told() -> Trace:
    """What happened, in memory."""
    trace = Trace(capacity=1_000_000)
    simulated(trace)
    return trace


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in files."""
    folder = tmp_path_factory.mktemp("trace")
    with FileTrace(folder) as trace:
        simulated(trace)
    return folder


@pytest.fixture(scope="module")
def rows(spark, written):
    """The same as Spark reads it."""
    trace = load_trace(spark, written).cache()
    yield trace
    trace.unpersist()


# -- files -------------------------------------------------------------------------------------------


def test_files_hold_what_memory_holds(told: Trace, written: Path) -> None:
    table = pq.read_table(written)
    assert tuple(table.column_names) == COLUMNS
    found = table.sort_by("number").to_pylist()
    assert [row["number"] for row in found] == list(range(told.num_events))
    for row, event in zip(found, told, strict=True):
        assert (row["kind"], row["subject"], row["task_manager"]) == (event.kind, event.subject, 0)
        assert row["time_us"] == us(event)
        names = ("segment", "target", "sequence", "bytes", "credit")
        assert {name: row[name] for name in names if row[name] >= 0} | (
            {"peer": row["peer"]} if row["peer"] else {}
        ) == event.detail


@pytest.mark.parametrize("drive", [ThreadedRun, AsyncRun, ProcessRun])
def test_every_driver_writes_one(drive: type, tmp_path: Path) -> None:
    results: list[object] = []
    before_us = time.time_ns() // 1000
    if drive is ProcessRun:
        ProcessRun(job(results), 2, make_trace=functools.partial(FileTrace, tmp_path)).run()
    else:
        with FileTrace(tmp_path) as trace:
            drive(job(results), trace, num_task_managers=2).run()
    assert sorted(results) == list(range(1, 151))
    table = pq.read_table(tmp_path).to_pylist()
    kinds = Counter(row["kind"] for row in table)
    assert kinds["local channel"] == kinds["remote channel"] == 3
    assert kinds["done"] == 5
    assert kinds["receive"] == kinds["take"] > 0
    assert kinds["idle"] > 0 < kinds["backpressured"]  # the source fills its pool, and sinks wait for the first record
    assert {row["task_manager"] for row in table} == ({0, 1} if drive is ProcessRun else {0})
    assert all(before_us - 1000 <= row["time_us"] <= time.time_ns() // 1000 + 1000 for row in table)
    assert not [file for file in tmp_path.iterdir() if not file.name.startswith("trace-")]


def test_files_change_while_the_job_runs_and_a_killed_run_leaves_the_finished_ones(tmp_path: Path) -> None:
    code = f"""
import sys, time
from course.data.trace_files import FileTrace
trace = FileTrace({str(tmp_path)!r}, seconds_per_file=0.05)
trace.use_clock(time.monotonic_ns)
note = trace.note("queue", "pool")
num_files = 0
while True:
    for segment in range(1000 * num_files, 1000 * num_files + 1000):
        note(segment)
    while len(trace.files) == num_files:
        print(num_files, flush=True)
        if not sys.stdin.readline():
            sys.exit(trace.close())
    num_files += 1
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    give_up_s = time.monotonic() + 60
    try:
        while int(child.stdout.readline()) < 2:
            assert time.monotonic() < give_up_s, child.communicate()  # the trace is closed: stderr says
            child.stdin.write("\n")
            child.stdin.flush()
    finally:
        child.kill()
        child.communicate()
    files = sorted(tmp_path.glob("trace-0-*.parquet"))
    assert len(files) >= 2
    segments = [segment for file in files for segment in pq.read_table(file)["segment"].to_pylist()]
    assert segments == list(range(len(segments)))
    for left in tmp_path.glob(".trace-0-*.part"):
        assert left not in files
    for file in files:
        file.unlink()
    FileTrace(tmp_path).close()
    assert list(tmp_path.iterdir()) == []  # what the killed one had begun is gone, and nothing happened in this one


def test_what_was_lost_is_a_row() -> None:
    trace = ColumnTrace(most_rows=2)
    note = trace.note("queue", "pool")
    for segment in range(5):
        note(segment)
    *found, lost = table_of(trace.drain()).to_pylist()
    assert [row["segment"] for row in found] == [0, 1]
    assert (lost["kind"], lost["bytes"], lost["segment"]) == ("lost", 3, -1)


def test_a_folder_with_a_trace_is_refused_and_one_that_cannot_be_made(tmp_path: Path) -> None:
    with FileTrace(tmp_path / "here") as trace:
        trace.note("queue", "pool")(1)
    with pytest.raises(TraceFileError, match="has a trace already, trace-0-00000"):
        FileTrace(tmp_path / "here")
    FileTrace(tmp_path / "here", task_manager=1).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceFileError, match="no trace can be written"):
        FileTrace(tmp_path / "file" / "there")


def test_a_disk_that_fails_ends_the_trace_and_not_the_job(tmp_path: Path) -> None:
    folder, results = tmp_path / "gone", []
    trace = FileTrace(folder)
    folder.rmdir()
    ThreadedRun(job(results), trace).run()
    assert len(results) == 150
    with pytest.raises(TraceFileError, match="ends early, after 0 files"):
        trace.close()
    assert not folder.exists()


# -- answers -----------------------------------------------------------------------------------------


def of_channels(told: Trace, kind: str) -> dict[str, list]:
    found = defaultdict(list)
    for event in told:
        if event.kind == kind:
            found[f"{event.subject}[{event.detail['target']}]"].append(event)
    return found


def us(event) -> int:
    return round(event.time_ms * 1e6) // 1000


def buffers_of(told: Trace) -> list[dict]:
    """The life of each delivered piece of a data buffer, followed step by step."""
    queued, pieces, by_sequence, waiting_for_home = {}, [], {}, defaultdict(list)
    for event in told:
        segment, target = event.detail.get("segment", -1), event.detail.get("target")
        channel = f"{event.subject}[{target}]"
        if event.kind == "queue":
            queued[channel, segment] = (us(event), event.sequence)
        elif event.kind == "deliver" and segment >= 0:
            piece = {"channel": channel, "queue": queued[channel, segment], "detail": event.detail}
            piece["deliver"] = us(event)
            pieces.append(piece)
            by_sequence[channel, event.detail["sequence"]] = piece
            waiting_for_home[event.subject, segment].append(piece)
        elif event.kind in ("receive", "take") and (channel, event.detail["sequence"]) in by_sequence:
            by_sequence[channel, event.detail["sequence"]][event.kind] = us(event)
        elif event.kind == "recycle":
            for piece in waiting_for_home.pop((event.subject, segment), ()):
                piece["home"] = us(event)
    return pieces


def test_residency(told: Trace, rows) -> None:
    whole = defaultdict(dict)
    for piece in buffers_of(told):
        whole[piece["channel"]][piece["queue"]] = piece  # the last piece counts
    answer = {row["channel"]: row for row in as_json(trace_queries.residency(rows))}
    assert answer.keys() == whole.keys()
    spans = {"queued": ("queue", "deliver"), "wire": ("deliver", "receive"), "inbox": ("receive", "take"),
             "held": ("queue", "home")}  # fmt: skip
    for channel, of_channel in whole.items():
        assert answer[channel]["buffers"] == len(of_channel)
        for name, (start, end) in spans.items():
            lives = [{**each, "queue": each["queue"][0]} for each in of_channel.values()]
            lengths = [each[end] - each[start] for each in lives if start in each and end in each]
            for percent in (50, 99):
                got = answer[channel][f"{name}_p{percent}_us"]
                assert got == (pytest.approx(np.percentile(lengths, percent)) if lengths else None)
    assert sum(row["wire_p50_us"] is None for row in answer.values()) == 3


def test_stalls(told: Trace, rows) -> None:
    end, spans = us(list(told)[-1]), defaultdict(list)
    since = {}
    for event in told:
        channel = f"{event.subject}[{event.detail.get('target')}]"
        if event.kind == "wait":
            since[channel] = us(event)
        elif event.kind == "grant" and channel in since:
            spans[channel].append(us(event) - since.pop(channel))
    for channel, start in since.items():
        spans[channel].append(end - start)
    answer = {row["channel"]: row for row in as_json(trace_queries.stalls(rows))}
    assert {name: (row["stalls"], row["stall_us"], row["longest_us"]) for name, row in answer.items()} == {
        name: (len(each), sum(each), max(each)) for name, each in spans.items()
    }
    assert spans, "the job was made to wait for credit"
    assert all(row["stall_share"] == pytest.approx(row["stall_us"] / end) for row in answer.values())


def test_progress_and_timeline(told: Trace, rows) -> None:
    events = list(told)
    end, stretches = us(events[-1]), []
    current: dict[str, tuple[str, int]] = {}
    for event in events:
        if event.kind in ("made", "idle", "backpressured", "done"):
            if event.subject in current:
                state, start = current.pop(event.subject)
                stretches.append((event.subject, state, start, us(event)))
            if event.kind != "done":
                current[event.subject] = (event.kind, us(event))
    assert not current, "every task has ended"
    found = [tuple(row.values()) for row in as_json(trace_queries.timeline(rows))]
    assert sorted(found) == sorted(stretches)
    totals = Counter()
    for task, state, start, stop in stretches:
        totals[task, state] += stop - start
    for row in as_json(trace_queries.progress(rows)):
        got = (row["busy_us"], row["idle_us"], row["backpressured_us"])
        assert got == tuple(totals[row["task"], state] for state in ("made", "idle", "backpressured"))
        assert row["backpressured_share"] == pytest.approx(row["backpressured_us"] / end)


def test_throughput_latency_and_gaps(told: Trace, rows) -> None:
    pieces = buffers_of(told)
    carried, waited = defaultdict(list), defaultdict(list)
    for piece in pieces:
        carried[piece["channel"], piece["deliver"] // 500 * 500].append(piece["detail"]["bytes"])
        is_remote = "receive" in piece
        taken = piece["take"] if is_remote else piece["deliver"]
        waited[piece["channel"], taken // 500 * 500].append(taken - piece["queue"][0])
    answer = {(row["channel"], row["start_us"]): row for row in as_json(trace_queries.throughput(rows, 0.5))}
    assert {key: (row["buffers"], row["bytes"]) for key, row in answer.items()} == {
        key: (len(each), sum(each)) for key, each in carried.items()
    }
    assert all(row["mb_per_s"] == pytest.approx(row["bytes"] / 500) for row in answer.values())
    answer = {(row["channel"], row["start_us"]): row for row in as_json(trace_queries.latency(rows, 0.5))}
    assert {key: (row["buffers"], row["p50_us"], row["max_us"]) for key, row in answer.items()} == {
        key: (len(each), statistics.median(each), max(each)) for key, each in waited.items()
    }
    for row in as_json(trace_queries.gaps(rows)):
        times = [piece["deliver"] for piece in pieces if piece["channel"] == row["channel"]]
        silences = np.diff(times)
        assert (row["gaps"], row["max_us"]) == (len(silences), max(silences))
        assert row["p99_us"] == pytest.approx(np.percentile(silences, 99))


def test_in_flight(told: Trace, rows) -> None:
    levels, most = Counter(), Counter()
    moments = []
    for piece in buffers_of(told):
        end = piece["take"] if "receive" in piece else piece["home"]
        moments += [(piece["deliver"], -1, piece["channel"]), (end, 1, piece["channel"])]
    for _, change, channel in sorted(moments):
        levels[channel] -= change
        most[channel] = max(most[channel], levels[channel])
    answer = {row["channel"]: row["most_buffers"] for row in as_json(trace_queries.in_flight(rows))}
    assert answer == dict(most)


def test_the_law_holds(rows) -> None:
    assert as_json(trace_queries.invariant(rows)) == []


def test_each_way_to_break_the_law_is_seen(told: Trace, rows) -> None:
    remote = [event for event in told if event.kind == "remote channel"]
    local = next(event for event in told if event.kind == "local channel")

    def of(event, kind: str, sequence: int) -> str:
        return (
            f"kind = '{kind}' AND subject = '{event.subject}' AND target = {event.detail['target']} "
            f"AND sequence = {sequence}"
        )

    broken = rows.where(f"NOT ({of(remote[0], 'receive', 1)}) AND NOT ({of(local, 'deliver', 0)})")
    broken = broken.union(rows.where(of(remote[1], "deliver", 1)))
    names = [f"{event.subject}[{event.detail['target']}]" for event in (*remote[:2], local)]
    said = {tuple(row.values()) for row in as_json(trace_queries.invariant(broken))}
    assert said == {
        (names[0], 1, "received 0 times"),
        (names[0], 2, "receive follows that of 0"),
        (names[1], 1, "sent 2 times"),
        (names[1], 1, "deliver follows that of 1"),
        (names[2], 1, "deliver follows that of -1"),
    }


def test_the_bottleneck_is_the_last_in_a_row_of_tasks_that_wait(spark, tmp_path: Path) -> None:
    trace = ColumnTrace()
    times = iter(range(0, 10_000_000, 100_000))
    trace.use_clock(lambda: next(times))
    for producer, consumer in (("source-0", "map-0"), ("map-0", "slow-0"), ("slow-0", "sink-0")):
        trace.note("output", f"{producer} → {consumer[:-2]}", peer=producer)()
        trace.note("local channel", f"{producer} → {consumer[:-2]}", 0, peer=consumer)()
    for task, state in (
        ("source-0", "backpressured"),
        ("map-0", "backpressured"),
        ("slow-0", "made"),
        ("sink-0", "idle"),
    ):
        trace.note(state, task)()
    for _ in range(20):
        trace.note("queue", "pool")(1)
    pq.write_table(table_of(trace.drain()), tmp_path / "trace-0-00000.parquet")
    (culprit,) = as_json(trace_queries.bottleneck(load_trace(spark, tmp_path)))
    assert (culprit["task"], culprit["held_up"]) == ("slow-0", "map-0")
    assert culprit["busy_share"] > 0.6


# -- the command -------------------------------------------------------------------------------------


def test_the_command_answers_in_tables_and_json(spark, written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(QUESTIONS) == _NAMES
    assert main(["trace", str(written), "--question", "progress", "--question", "invariant", "--limit", "2"]) == 0
    out = capsys.readouterr().out
    assert "progress: how long each task was busy, idle and backpressured" in out
    assert "… and more; --json has all, or --limit more than 2" in out
    assert "it holds: each buffer once, in order" in out
    (file,) = written.glob("trace-*.parquet")
    assert main(["trace", str(file), "--question", "stalls", "--json"]) == 0
    assert {row["channel"] for row in json.loads(capsys.readouterr().out)["stalls"]}


def test_what_is_no_trace_is_said_in_a_sentence(spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(tmp_path)]) == 2
    assert "has no trace; `sluice demo --trace" in capsys.readouterr().err
    (tmp_path / "trace-0-00000.parquet").write_bytes(os.urandom(100))
    assert main(["trace", str(tmp_path)]) == 2
    assert "cannot be read as a trace" in capsys.readouterr().err
    assert main(["trace", str(tmp_path), "--limit", "0"]) == 2
    with pytest.raises(TraceMissingError, match="it has no column time_us"):
        load_trace(spark, ROOT / "course" / "data" / "flights.parquet")


def test_a_table_stands_under_its_names(spark) -> None:
    frame = spark.sql("SELECT 'map-0' AS task, 12 AS busy_us, 0.5D AS share, CAST(NULL AS BIGINT) AS wire_us")
    assert as_table(frame) == "task   busy_us  share  wire_us\nmap-0       12    0.5        –"
