"""`sluice peer` when something is not as it should be, and when consumers come and go."""

from __future__ import annotations

import pytest

from tests.interop.relay import Relay, WrongAtFirst
from tests.support.peer_ends import End, check, company, counts_of, offer_of, sums_of

SEVERAL = {"partitions": 2, "subpartitions": 3}


def test_two_consumers_on_two_connections():
    producer = End("serve", subpartitions=4, records=100)
    offer = offer_of(producer.next_event())
    with company(offer):
        one, two = (End("consume", **offer, subpartition_list=which) for which in ("1,3", "0,2"))
        assert [channel["subpartition"] for channel in one.done()["channels"]] == [1, 3]
        assert [channel["first"] for channel in two.done()["channels"]] == [0, 2_000_000_000]
    assert producer.done()["frames"]["connections"] == 3


@pytest.mark.slow
def test_a_consumer_that_leaves_early_is_status_4_of_the_producer():
    producer = End("serve", records=1_000_000)
    done = End("consume", stop_after=10, **offer_of(producer.next_event())).done()
    (channel,) = done["channels"]
    assert (done["ok"], channel["records"], channel["last"], channel["end_of_partition"]) == (True, 10, 9, False)
    assert done["pool_available_after"] == done["pool_total"]
    produced = producer.done(status=4)
    assert [event["event"] for event in producer.events] == ["listening", "produced", "done"]
    assert (producer.events[1]["aborted"], produced["aborted"]) == (True, True)
    assert produced["pool_available_after"] == produced["pool_total"]


def test_a_consumer_that_leaves_when_all_is_produced_has_had_it():
    producer = End("serve", records=100)
    listening = producer.next_event()
    assert producer.next_event() == {"event": "produced", "aborted": False}
    End("consume", stop_after=10, **offer_of(listening)).done()
    assert producer.done()["aborted"] is False


def test_ids_come_from_the_seed():
    producers = [End("serve", id_seed=seed, records=1, partitions=2) for seed in (1, 7)]
    for producer, seed in zip(producers, (1, 7), strict=True):
        listening = producer.next_event()
        assert listening["partitions"] == [
            {
                "partition_id": f"111111111111{seed:04x}222222222222{seed:04x}{number:08x}",
                "producer_id": f"333333333333{seed:04x}444444444444{number:04x}",
            }
            for number in range(2)
        ]
        End("consume", **offer_of(listening)).done()
        producer.done()


@pytest.mark.slow
def test_a_partition_that_is_not_there_is_asked_for_until_it_is():
    producer = End("serve", records=100, **SEVERAL)
    offer = offer_of(producer.next_event())
    with Relay(offer["port"], to_producer=WrongAtFirst(times=2)) as relay:
        consumed = End("consume", **{**offer, "port": relay.port}).done()
        produced = producer.done()
    check(consumed, produced)
    assert consumed["partition_not_found"] == 6 * 2
    assert counts_of(produced, "recv")["PartitionRequest"] == 6 * 3


@pytest.fixture
def offer_with_company():
    producer = End("serve", records=100)
    offer = offer_of(producer.next_event())
    with company(offer):
        yield offer
    producer.done()


def test_a_partition_that_is_never_there_is_given_up(offer_with_company):
    offer = offer_with_company
    known = offer.pop("partitions")
    done = End("consume", **offer, partitions=known[:41] + "ee" * 16, retriggers=1).done(status=1)
    assert done.keys() == {"event", "ok", "error"}
    assert f"PartitionNotFoundError: Partition {known[:32]}#0@{'ee' * 16} not found, asked 2 times" in done["error"]
    End("consume", **offer, partitions=known).done()


def test_a_partition_that_has_been_read_is_there_no_more():
    producer = End("serve", records=100, partitions=2)
    offer = offer_of(producer.next_event())
    first, second = offer.pop("partitions").split(",")
    with company(offer):
        End("consume", **offer, partitions=first).done()
        done = End("consume", **offer, partitions=first, retriggers=0).done(status=1)
        assert "not found, asked 1 times" in done["error"]
        End("consume", **offer, partitions=second).done()
    producer.done()


def test_a_subpartition_that_is_not_there_is_an_error(offer_with_company):
    offer = offer_with_company
    done = End("consume", **offer, subpartition_list="7").done(status=1)
    assert "Subpartition not found. Index: 7" in done["error"]
    assert done["pool_available_after"] == done["pool_total"]
    End("consume", **offer).done()


@pytest.mark.parametrize("num_records", [10, 1000])  # read one by one, and many at a time
def test_a_byte_changed_on_its_way_is_noticed(num_records):
    def change_a_value(frame):
        if frame[8] == 0 and frame[33] == 0:  # a BufferResponse with data
            frame[39 + 4 + 7] ^= 0x10  # the last byte of the first value
        return frame

    producer = End("serve", records=num_records)
    offer = offer_of(producer.next_event())
    with Relay(offer["port"], to_consumer=change_a_value) as relay:
        done = End("consume", **{**offer, "port": relay.port}).done(status=1)
        produced = producer.done()
    assert (done["ok"], done["channels"][0]["order_ok"]) == (False, False)
    assert done["channels"][0]["order_error"] == "record 0: expected index 0 got 16"
    assert sums_of(done) != sums_of(produced)


def test_bytes_that_are_no_records_are_an_error_and_cost_no_buffer():
    def make_a_length_negative(frame):
        if frame[8] == 0 and frame[33] == 0:
            frame[39] = 0xFF
        return frame

    producer = End("serve", records=10)
    offer = offer_of(producer.next_event())
    with Relay(offer["port"], to_consumer=make_a_length_negative) as relay:
        done = End("consume", **{**offer, "port": relay.port}).done(status=1)
        producer.done()
    assert "a record cannot have a length of" in done["error"]
    assert (done["ok"], done["pool_available_after"]) == (False, done["pool_total"])


def test_a_record_cut_off_by_the_end_is_noticed():
    def cut_off(frame):
        if frame[8] == 0 and frame[33] == 0:
            size = int.from_bytes(frame[35:39], "big") - 3
            frame[0:4], frame[35:39] = (39 + size).to_bytes(4, "big"), size.to_bytes(4, "big")
            del frame[39 + size :]
        return frame

    producer = End("serve", records=10)
    offer = offer_of(producer.next_event())
    with Relay(offer["port"], to_consumer=cut_off) as relay:
        done = End("consume", **{**offer, "port": relay.port}).done(status=1)
        producer.done()
    assert (done["ok"], done["channels"][0]["records"], done["channels"][0]["end_of_partition"]) == (False, 9, True)
    assert done["channels"][0]["order_error"] == "end of partition inside a record"
    assert done["pool_available_after"] == done["pool_total"]


def test_a_producer_that_is_not_there_is_an_error_of_the_consumer():
    producer = End("serve", records=1)
    offer = offer_of(producer.next_event())
    End("consume", **offer).done()
    producer.done()
    done = End("consume", **offer).done(status=1)
    assert (done["ok"], done["pool_available_after"]) == (False, done["pool_total"])
    assert "Connecting to remote task manager" in done["error"]


def test_the_time_limit_is_status_3():
    assert End("serve", max_seconds=0).done(status=3) == {
        "event": "error",
        "error": "watchdog: --max-seconds 0 reached",
    }


def test_too_few_buffers_are_an_error():
    few = "Insufficient number of network buffers"
    assert few in End("serve", pool_segments=1).done(status=1)["error"]
    producer = End("serve")
    offer = offer_of(producer.next_event())
    assert few in End("consume", pool_segments=2, **offer).done(status=1)["error"]
    End("consume", **offer).done()
    producer.done()


@pytest.mark.slow
def test_a_buffer_too_large_for_the_consumer_is_its_error():
    producer = End("serve", segment_size=128)
    done = End("consume", **{**offer_of(producer.next_event()), "segment_size": 64}).done(status=1)
    assert "128 B do not fit a buffer of 64 B" in done["error"]
    assert done["pool_available_after"] == done["pool_total"]
    producer.done(status=4)
