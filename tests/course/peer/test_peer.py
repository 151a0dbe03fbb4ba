"""`sluice peer`: our producer's end and our consumer's, under every option; no Java. For that see `tests/interop`.

What Flink's ends say of the same conversation is recorded in `flink_peer.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import product

import pytest

from tests.interop.record import CONSUMING, PRODUCING, RECORDED
from tests.support.peer_ends import End, counts_of, offer_of, sums_of, talk

SEVERAL = {"partitions": 2, "subpartitions": 3}


# -- records -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "crc32"),
    [({"records": 100_000}, 1443496408), ({"records": 1000, "type": "string", "string_pad": 64}, 3049391910)],
    ids=["longs", "strings"],
)
def test_the_checksums_are_those_of_flink(options, crc32):
    consumed, produced = talk(options)
    assert sums_of(consumed) == sums_of(produced) == {(0, 0): crc32}


def test_longs_and_strings_name_their_place():
    consumed, _ = talk({"records": 3, **SEVERAL})
    for channel in consumed["channels"]:
        first = (channel["partition_index"] * 3 + channel["subpartition"]) * 1_000_000_000
        assert (channel["first"], channel["last"]) == (first, first + 2)
    consumed, _ = talk({"records": 3, "type": "string", "string_pad": 7, **SEVERAL})
    assert [consumed["channels"][-1][name] for name in ("first", "last")] == ["p1-s2-r0-a", "p1-s2-r2-"]


@pytest.mark.parametrize("flush_ms", [-1, 0, 1])
@pytest.mark.parametrize("timestamps", ["yes", "no"])
@pytest.mark.parametrize(("type_", "elements"), list(product(["long", "string"], ["raw", "stream"])))
def test_every_kind_of_record_arrives_however_often_is_flushed(type_, elements, timestamps, flush_ms):
    options = {"type": type_, "elements": elements, "timestamps": timestamps, "flush_ms": flush_ms}
    consumed, _ = talk({"records": 500, "segment_size": 256, **SEVERAL, **options}, {"exclusive": 1, "floating": 2})
    overhead = {"raw": 4, "stream": 5 + 8 * (timestamps == "yes")}[elements]
    if type_ == "long":
        assert {channel["bytes"] for channel in consumed["channels"]} == {500 * (overhead + 8)}
    assert {channel["records"] for channel in consumed["channels"]} == {500}


@pytest.mark.parametrize("pad", [0, 1, 64, 20_000])
def test_strings_are_as_long_as_the_pad_allows(pad):
    consumed, _ = talk({"records": 40, "type": "string", "string_pad": pad, "segment_size": 4096})
    (channel,) = consumed["channels"]
    letters = (39 * 31) % pad if pad else 0
    assert len(channel["last"]) == len("p0-s0-r39-") + letters


@pytest.mark.parametrize("segment_size", [1, 7, 12, 13, 100])
def test_buffers_of_any_size_will_do(segment_size):
    options = {"records": 60, "watermark_every": 7, "elements": "stream", "segment_size": segment_size, "flush_ms": -1}
    consumed, _ = talk(options, {"exclusive": 1, "floating": 1})
    (channel,) = consumed["channels"]
    assert channel["bytes"] == 60 * (4 + 1 + 8 + 8) + (60 // 7 + 1) * (4 + 1 + 8)
    assert channel["data_buffers"] == -(-channel["bytes"] // segment_size)


def test_no_records_are_an_end_alone():
    consumed, _ = talk({"records": 0})
    (channel,) = consumed["channels"]
    assert (channel["records"], channel["first"], channel["data_buffers"], channel["events"]) == (0, None, 0, 1)


# -- watermarks, barriers ------------------------------------------------------------------------------------------


def test_watermarks_go_to_all_and_end_with_the_last_one_there_is():
    consumed, _ = talk({"records": 95, "elements": "stream", "watermark_every": 10, **SEVERAL})
    assert [(each["watermarks"], each["last_watermark"]) for each in consumed["channels"]] == 6 * [(10, 2**63 - 1)]
    consumed, _ = talk({"records": 95, "watermark_every": 10})
    assert [(each["watermarks"], each["last_watermark"]) for each in consumed["channels"]] == [(0, -(2**63))]


@pytest.mark.parametrize("flush_ms", [0, 100])
@pytest.mark.parametrize("mode", ["exactly_once", "at_least_once"])
def test_barriers_arrive_everywhere_and_only_aligned_ones_stop_a_channel(mode, flush_ms):
    options = {"records": 95, "barrier_every": 10, "barrier_mode": mode, "segment_size": 64, "flush_ms": flush_ms}
    consumed, produced = talk({**options, **SEVERAL}, {"exclusive": 1, "floating": 1})
    assert [channel["barriers"] for channel in consumed["channels"]] == 6 * [list(range(1, 10))]
    assert [channel["events"] for channel in consumed["channels"]] == 6 * [10]
    resumed = counts_of(produced, "recv").get("ResumeConsumption", 0)
    assert resumed == (9 * 6 if mode == "exactly_once" else 0)


# -- buffers -------------------------------------------------------------------------------------------------------


def test_the_pools_are_as_large_as_the_options_say():
    consumed, produced = talk({**SEVERAL, "buffers_per_channel": 1, "floating": 3}, {"exclusive": 3, "floating": 5})
    assert produced["pool_total"] == 2 * (3 * 1 + 3 + 3 + 1)
    assert consumed["pool_total"] == 3 * (2 * 3 + 5) + 8
    assert {channel["initial_credit"] for channel in consumed["channels"]} == {3}
    consumed, produced = talk({"pool_segments": 2}, {"pool_segments": 3})
    assert (produced["pool_total"], consumed["pool_total"]) == (2, 3)


def test_a_reader_in_no_hurry_gets_everything_and_never_more_than_it_has_room_for():
    consumed, _ = talk({"records": 300, "segment_size": 64, **SEVERAL}, {"delay_us": 10, "exclusive": 1, "floating": 1})
    assert max(channel["max_queued"] for channel in consumed["channels"]) <= 1 + 1 + 1  # the end needs no room


def test_a_producer_in_no_hurry_is_waited_for():
    talk({"records": 50, "delay_us": 10, "flush_ms": 1, **SEVERAL})


@pytest.mark.slow
@pytest.mark.parametrize("flush_ms", [0, 1])
def test_a_buffer_that_is_not_full_leaves_when_it_is_flushed(flush_ms):
    producer = End("serve", records=10, delay_us=1_000_000_000, flush_ms=flush_ms)
    done = End("consume", stop_after=1, **offer_of(producer.next_event())).done()
    assert done["channels"][0]["records"] == 1
    producer.done(status=4)


# -- as Flink's end ------------------------------------------------------------------------------------------------


def shape_of(value):
    """The keys of an event, at all depths; what is in lists and what is of receivers looks alike everywhere."""
    if isinstance(value, list):
        return [shape_of(each) for each in value[:1]]
    if isinstance(value, dict):
        is_by_name = {len(key) for key in value} == {32}
        return shape_of(list(value.values())) if is_by_name else {key: shape_of(each) for key, each in value.items()}
    return type(value).__name__


@pytest.fixture(scope="module")
def recorded():
    return json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Of our ends, the same as is recorded of Flink's."""
    traces = {mode: tmp_path_factory.mktemp("trace") / f"{mode}.jsonl" for mode in ("serve", "consume")}
    producer = End("serve", trace=traces["serve"], **PRODUCING)
    consumer = End("consume", trace=traces["consume"], **CONSUMING, **offer_of(producer.next_event()))
    consumer.done()
    producer.done()
    lines = {
        f"{mode} --trace": [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for mode, path in traces.items()
    }
    return {"serve": producer.events, "consume": consumer.events, **lines}


@pytest.mark.parametrize("mode", ["serve", "consume"])
def test_events_have_the_keys_of_flinks_end_in_the_same_order(said, recorded, mode):
    ours, flinks = [[json.dumps(shape_of(event)) for event in each[mode]] for each in (said, recorded)]
    assert ours == flinks


@pytest.mark.parametrize("mode", ["serve --trace", "consume --trace"])
def test_traces_have_the_keys_of_flinks_end_in_the_same_order(said, recorded, mode):
    ours, flinks = [{(line["dir"], line["msg"]): list(line) for line in each[mode]} for each in (said, recorded)]
    assert ours == flinks


def test_the_same_bytes_are_sent_as_flink_sends(said, recorded):
    ours, flinks = [sent_by_partition(each["serve --trace"]) for each in (said, recorded)]
    assert ours == flinks


def sent_by_partition(trace):
    """What was sent for each partition: number, kind and payload, but not the backlog, which depends on the reader."""
    partitions = {line["receiver"]: line["partition_id"] for line in trace if line["msg"] == "PartitionRequest"}
    sent = {partition: [] for partition in sorted(partitions.values())}
    for line in trace:
        if line["msg"] == "BufferResponse":
            payload = line["head_hex"][2 * 39 :]
            sent[partitions[line["receiver"]]].append((line["seq"], line["data_type"], line["size"], payload))
    return sent


def test_a_trace_has_every_frame_as_both_ends_saw_it(said):
    for mode in ("serve", "consume"):
        lines = said[f"{mode} --trace"]
        counts = Counter(f"{line['dir']}:{line['msg']}" for line in lines)
        assert counts == said[mode][-1]["frames"]["counts"]
        assert [line["t_us"] for line in lines] == sorted(line["t_us"] for line in lines)
    for sent, received in (("serve", "consume"), ("consume", "serve")):
        heads = [
            [line["head_hex"] for line in said[f"{mode} --trace"] if line["dir"] == direction]
            for mode, direction in ((sent, "send"), (received, "recv"))
        ]
        assert heads[0] == heads[1]
