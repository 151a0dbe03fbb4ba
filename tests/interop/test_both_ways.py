"""The real Flink sends and ours reads, and the other way round: the same bytes, the same credit, nothing lost.

What is checked of every conversation is in `check`: equal checksums of each channel, records in order, no buffer lost
at either end, and no end that ever sent a buffer the other had not granted.
"""

from __future__ import annotations

import json
import os
import re
import signal

import psutil
import pytest

from course import swap
from course.curriculum.specimens import right_answers
from course.flink.recorded import conversation
from course.peer.with_flink import is_live
from tests.course.swap.test_swap_channels import cell
from tests.interop.record import RECORDED, converse, for_learners, not_found
from tests.interop.relay import Relay, WrongAtFirst
from tests.support.peer_ends import check, company, counts_of, sums_of

pytestmark = [pytest.mark.flink, pytest.mark.slow, pytest.mark.sampled(one_in=5)]

SEVERAL = {"partitions": 2, "subpartitions": 3}
KNOWN = [({"records": 100_000}, 1443496408), ({"records": 1000, "type": "string"}, 3049391910)]


@pytest.fixture(params=[("flink", "sluice"), ("sluice", "flink")], ids=["flink to ours", "ours to flink"])
def ends(request, peer):
    """Start a producer of one kind or a consumer of the other: `ends("serve", records=10)`."""
    kinds = dict(zip(("serve", "consume"), request.param, strict=True))
    return lambda mode, **options: peer(kinds[mode], mode, **options)


@pytest.fixture
def talk(ends):
    """A conversation to its end; what both found out, which is checked."""

    def talk(producing, consuming=None):
        producer = ends("serve", **producing)
        consumer = ends("consume", **{**producer.offer(), **(consuming or {})})
        consumed, produced = consumer.done(), producer.done()
        check(consumed, produced)
        return consumed, produced

    return talk


# -- records -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "crc32"), KNOWN, ids=["longs", "strings"])
def test_known_records_have_the_known_checksum(talk, options, crc32):
    consumed, _ = talk(options)
    assert sums_of(consumed) == {(0, 0): crc32}


@pytest.mark.parametrize("elements", ["raw", "stream"])
def test_three_million_longs_over_two_by_three_channels(talk, elements):
    consumed, _ = talk({"records": 500_000, "elements": elements, **SEVERAL})
    assert sum(channel["records"] for channel in consumed["channels"]) == 3_000_000
    assert len(consumed["channels"]) == 6


def test_strings_of_20_kb_in_buffers_of_4_kib(talk):
    consumed, _ = talk({"records": 650, "type": "string", "string_pad": 20_000, "segment_size": 4096, **SEVERAL})
    for channel in consumed["channels"]:
        assert channel["bytes"] > 650 * 9_500
        assert channel["data_buffers"] >= channel["bytes"] // 4096


@pytest.mark.parametrize(("type_", "timestamps"), [("long", "no"), ("string", "yes")])
def test_watermarks_come_between_the_records(talk, type_, timestamps):
    options = {"type": type_, "elements": "stream", "timestamps": timestamps, "watermark_every": 7, "segment_size": 512}
    consumed, _ = talk({"records": 1000, **options, **SEVERAL})
    assert [(each["watermarks"], each["last_watermark"]) for each in consumed["channels"]] == 6 * [(143, 2**63 - 1)]


# -- barriers ------------------------------------------------------------------------------------------------------


def test_aligned_barriers_stop_each_channel_until_all_have_them(talk):
    options = {"records": 5000, "type": "string", "elements": "stream", "watermark_every": 100, "barrier_every": 250}
    consumed, produced = talk({**options, "segment_size": 4096, **SEVERAL}, {"exclusive": 1, "floating": 2})
    assert [channel["barriers"] for channel in consumed["channels"]] == 6 * [list(range(1, 21))]
    assert counts_of(produced, "recv")["ResumeConsumption"] == 6 * 20


def test_barriers_that_stop_nobody_in_small_buffers_flushed_after_each_record(talk):
    options = {"records": 2000, "type": "string", "barrier_every": 50, "barrier_mode": "at_least_once"}
    consumed, produced = talk({**options, "segment_size": 1024, "flush_ms": 0, **SEVERAL})
    assert [channel["barriers"] for channel in consumed["channels"]] == 6 * [list(range(1, 41))]
    assert "ResumeConsumption" not in counts_of(produced, "recv")


# -- credit --------------------------------------------------------------------------------------------------------


def test_a_slow_reader_with_little_room_is_never_sent_more(talk):
    options = {"records": 1500, "segment_size": 256, "elements": "stream", "barrier_every": 300}
    consumed, produced = talk({**options, **SEVERAL}, {"delay_us": 50, "exclusive": 1, "floating": 1})
    assert [channel["initial_credit"] for channel in consumed["channels"]] == 6 * [1]
    for done in (consumed, produced):
        assert {receiver["lowest_balance"] for receiver in done["frames"]["receivers"].values()} == {0}
    assert max(receiver["max_backlog"] for receiver in produced["frames"]["receivers"].values()) > 1


def test_a_slow_producer_is_waited_for(talk):
    talk({"records": 200, "delay_us": 100, "flush_ms": 1, **SEVERAL})


# -- coming and going ----------------------------------------------------------------------------------------------


def test_two_consumers_on_two_connections(ends):
    producer = ends("serve", records=1000, subpartitions=2)
    offer = producer.offer()
    with company(offer):  # one may have gone before the other comes
        consumers = [ends("consume", **offer, subpartition_list=index) for index in (0, 1)]
        assert [consumer.done()["channels"][0]["first"] for consumer in consumers] == [0, 1_000_000_000]
    done = producer.done()
    assert done["frames"]["connections"] == 3
    assert {**sums_of(consumers[0].done()), **sums_of(consumers[1].done())} == sums_of(done)


def test_a_consumer_that_leaves_early_is_status_4_of_the_producer(ends):
    producer = ends("serve", records=1_000_000, subpartitions=2)
    done = ends("consume", stop_after=10, **producer.offer()).done()
    assert [channel["records"] for channel in done["channels"]] == [10, 10]
    assert done["pool_available_after"] == done["pool_total"]
    produced = producer.done(exit_code=4)
    assert produced["aborted"] is True
    assert produced["pool_available_after"] == produced["pool_total"]


def test_a_consumer_that_is_killed_is_the_same_to_the_producer(ends):
    producer = ends("serve", records=1_000_000)
    consumer = ends("consume", delay_us=1000, **producer.offer())
    until_connected(producer, consumer)
    os.kill(consumer.pid, signal.SIGKILL)
    produced = producer.done(exit_code=4)
    assert produced["pool_available_after"] == produced["pool_total"]


def test_a_producer_that_is_killed_is_an_error_of_the_consumer(ends):
    producer = ends("serve", records=1_000_000, delay_us=1000)
    consumer = ends("consume", **producer.offer())
    until_connected(producer, consumer)
    producer.kill()
    done = consumer.done(exit_code=1)
    assert (done["ok"], done["pool_available_after"]) == (False, done["pool_total"])
    assert re.search("Connection (unexpectedly closed by remote task manager|reset)", done["error"])


def until_connected(producer, consumer):
    process = psutil.Process(producer.pid)
    while not any(each.status == "ESTABLISHED" for each in process.net_connections()):
        assert consumer.is_running, consumer.stderr()


def test_a_partition_that_is_not_there_is_asked_for_until_it_is(ends):
    producer = ends("serve", records=1000, **SEVERAL)
    offer = producer.offer()
    with Relay(offer["port"], to_producer=WrongAtFirst(times=2)) as relay:
        consumed, produced = ends("consume", **{**offer, "port": relay.port}).done(), producer.done()
    check(consumed, produced)
    assert consumed["partition_not_found"] == 6 * 2
    assert counts_of(produced, "recv")["PartitionRequest"] == 6 * 3


def test_a_partition_that_is_never_there_is_given_up(ends):
    producer = ends("serve", records=10)
    offer = producer.offer()
    known = offer.pop("partitions")
    done = ends("consume", **offer, partitions=known[:41] + "ee" * 16, retriggers=1).done(exit_code=1)
    assert f"Partition {known[:32]}#0@{'ee' * 16} not found" in done["error"]
    assert producer.done(exit_code=4)["aborted"] is True  # for nobody has come since


# -- what drives one end drives the other --------------------------------------------------------------------------


@pytest.mark.parametrize(("producing", "consuming"), [("flink", "flink"), ("flink", "sluice"), ("sluice", "flink")])
def test_both_kinds_print_and_trace_the_keys_that_are_recorded(tmp_path, producing, consuming):
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    said = converse(producing, consuming, tmp_path) | not_found(producing, consuming)
    assert keys_of(said) == keys_of(recorded)


def test_flink_still_says_what_is_recorded_for_learners(tmp_path):
    """All but the backlogs, which are as fast as the producer was."""

    def told(conversation):
        return [
            {**channel, "frames": [frame[:58] + frame[66:] for frame in channel["frames"]]}
            for channel in conversation["channels"]
        ]

    assert told(for_learners("flink", "sluice", tmp_path)) == told(conversation())


def test_parts_of_a_learner_talk_to_it():
    assert is_live()
    for exercise, name in (("18.1", "Wire"), ("18.2", "Reader")):
        report = swap.run(exercise, cell(right_answers(exercise)[0].source, name), driver="flink")
        assert (report.is_equal, report.taken_out, report.told) == (True, (), "not found, asked 4 times")


def keys_of(said):
    """The keys of each event and of each kind of frame."""
    return {
        name: {line.get("event") or f"{line['dir']}:{line['msg']}": list(line) for line in lines}
        for name, lines in said.items()
    }
