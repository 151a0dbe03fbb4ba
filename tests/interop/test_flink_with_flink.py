"""Flink's producer and Flink's consumer: nothing of ours is tried here but the runner, and what we know of Flink's end.

The checksums are those of the records as `FlinkPeer` defines them; every producer must come to the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess

import psutil
import pytest

from course.peer.process import flink_command

pytestmark = [pytest.mark.flink, pytest.mark.slow]

LONGS = {"records": 100_000}
STRINGS = {"records": 1000, "type": "string", "string_pad": 64}


@pytest.mark.parametrize(("options", "crc32"), [(LONGS, 1443496408), (STRINGS, 3049391910)], ids=["longs", "strings"])
def test_records_arrive_with_the_known_checksum(peer, options, crc32):
    producer = peer("flink", "serve", **options)
    consumer = peer("flink", "consume", **producer.offer())
    consumed, produced = consumer.done(), producer.done()
    (channel,) = consumed["channels"]
    assert (channel["records"], channel["crc32"]) == (options["records"], crc32)
    assert (channel["order_ok"], channel["end_of_partition"]) == (True, True)
    assert [sent["crc32"] for sent in produced["channels"]] == [crc32]


def test_no_buffer_is_lost_and_credit_is_kept(peer):
    options = {"partitions": 2, "subpartitions": 3, "records": 5000, "barrier_every": 1000, "segment_size": 4096}
    producer = peer("flink", "serve", type="string", elements="stream", **options)
    consumer = peer("flink", "consume", exclusive=1, floating=2, **producer.offer())
    for done in (consumer.done(), producer.done()):
        assert done["pool_available_after"] == done["pool_total"]
        receivers = done["frames"]["receivers"].values()
        assert len(receivers) == 6
        assert min(receiver["lowest_balance"] for receiver in receivers) >= 0
    assert {tuple(channel["barriers"]) for channel in consumer.done()["channels"]} == {(1, 2, 3, 4, 5)}


def test_two_consumers_on_two_connections(peer):
    producer = peer("flink", "serve", records=1000, subpartitions=2)
    offer = producer.offer()
    consumers = [peer("flink", "consume", subpartition_list=index, **offer) for index in (0, 1)]
    assert [consumer.done()["channels"][0]["first"] for consumer in consumers] == [0, 1_000_000_000]
    assert producer.done()["frames"]["connections"] == 2


def test_it_listens_on_the_loopback_address_only(peer):
    producer = peer("flink", "serve")
    port = producer.offer()["port"]
    bound = [address.laddr for address in psutil.Process(producer.pid).net_connections() if address.status == "LISTEN"]
    assert [address.port for address in bound] == [port]
    assert bound[0].ip in ("127.0.0.1", "::ffff:127.0.0.1")


def test_a_consumer_that_leaves_early_is_status_4_of_the_producer(peer):
    producer = peer("flink", "serve", records=1_000_000)
    consumer = peer("flink", "consume", stop_after=10, **producer.offer())
    assert consumer.done()["channels"][0]["records"] == 10
    assert producer.done(exit_code=4)["aborted"] is True


def test_a_consumer_that_is_killed_is_the_same_to_the_producer(peer):
    producer = peer("flink", "serve", records=1_000_000)
    consumer = peer("flink", "consume", delay_us=1000, **producer.offer())
    producer_process = psutil.Process(producer.pid)
    while not any(c.status == "ESTABLISHED" for c in producer_process.net_connections()):
        assert consumer.is_running, consumer.stderr()
    os.kill(consumer.pid, signal.SIGKILL)
    assert consumer.exit_code() == -signal.SIGKILL
    assert producer.done(exit_code=4)["aborted"] is True


def test_a_producer_that_is_killed_is_an_error_of_the_consumer(peer):
    producer = peer("flink", "serve", records=1_000_000)
    consumer = peer("flink", "consume", **producer.offer())
    producer.wait_for("listening")
    producer.kill()
    done = consumer.done(exit_code=1)
    assert done["ok"] is False


def test_a_partition_that_nobody_has_is_not_found_and_asked_for_again(peer):
    producer = peer("flink", "serve")
    offer = producer.offer()
    unknown = offer.pop("partitions").split(":")[0] + ":" + "ee" * 16
    done = peer("flink", "consume", partitions=unknown, retriggers=2, **offer).done(exit_code=1)
    assert "PartitionNotFoundException" in done["error"]
    assert producer.is_running


def wrong_use(*words):
    return subprocess.run([*flink_command(), *words], capture_output=True, text=True, check=False, timeout=60)


def test_without_a_mode_it_is_status_2():
    done = wrong_use()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: FlinkPeer serve|consume")


@pytest.mark.parametrize("words", [["nonsense"], ["serve", "--records", "x"], ["consume"]], ids=" ".join)
def test_what_it_does_not_understand_is_an_error_event_and_status_1(words):
    done = wrong_use(*words)
    assert done.returncode == 1
    assert json.loads(done.stdout)["event"] == "error"


def test_an_option_without_a_value_is_status_1_and_no_event():
    done = wrong_use("serve", "--records")
    assert (done.returncode, done.stdout) == (1, "")
    assert "expected --key value, got --records" in done.stderr


def test_an_option_that_it_does_not_know_is_passed_over(peer):
    assert peer("flink", "serve", nonsense=1).offer()["port"]
