"""`sluice peer` as a command: wrong use, what is said where, and how a process ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from course.cli import main
from course.peer.process import ROOT, Peer
from tests.support.peer_ends import End, offer_of

PEER = [sys.executable, "-m", "course.cli", "peer"]
PARTITION = f"{'1' * 40}:{'2' * 32}"
CONSUME = f"consume --port 1 --partitions {PARTITION}"

WRONG = {
    "": "required: MODE",
    "nonsense": "invalid choice: 'nonsense'",
    "serve --nonsense 1": "unrecognized arguments",
    "serve --record 1": "unrecognized arguments",
    "serve --records": "expected one argument",
    "serve --records x": "'x' is no whole number from 0 to",
    "serve --records -1": "'-1' is no whole number from 0 to",
    "serve --records 1_0": "'1_0' is no whole number from 0 to",
    "serve --port 65536": "from 0 to 65535",
    "serve --partitions 0": "from 1 to 10000",
    "serve --segment-size 0": "from 1 to 1073741824",
    "serve --type int": "invalid choice: 'int'",
    "serve --elements cooked": "invalid choice: 'cooked'",
    "serve --barrier-mode sometimes": "invalid choice: 'sometimes'",
    "serve --flush-ms -2": "from -1 to",
    "serve --max-seconds -1": "from 0 to",
    "consume": "required: --port, --partitions",
    "consume --port 1": "required: --partitions",
    "consume --port 0 --partitions x": "from 1 to 65535",
    "consume --port 1 --partitions x": "'x' is no partition: give partition_id:producer_id",
    f"consume --port 1 --partitions {PARTITION},{PARTITION[:-1]}": "is no partition",
    f"{CONSUME} --host 192.0.2.1": "'192.0.2.1' is no address of this machine",
    f"{CONSUME} --host no.such.name.invalid": "is no address of this machine",
    f"{CONSUME} --subpartition-list 1,x": "'x' is no whole number",
    f"{CONSUME} --exclusive 0": "from 1 to",
    f"{CONSUME} --floating 0": "from 1 to",
    f"{CONSUME} --stop-after -2": "from -1 to",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_use_is_status_2_and_said_on_stderr(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["peer", *words.split()])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.startswith("usage: sluice")
    assert WRONG[words] in err


def test_a_trace_that_cannot_be_written_is_status_2(tmp_path, capsys):
    file = tmp_path / "nowhere" / "trace.jsonl"
    assert main(["peer", "serve", "--trace", str(file)]) == 2
    assert capsys.readouterr() == ("", f"--trace {file} cannot be written: No such file or directory\n")


def test_a_port_that_is_taken_is_an_error_event_and_status_1(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["peer", "serve", "--port", str(taken.getsockname()[1])]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["event"] == "error"
    assert "port 0 takes one that is free" in said["error"]


def test_help_lists_every_option_of_the_mode_and_no_other(capsys):
    for mode, mine, others in (("serve", "--flush-ms", "--retriggers"), ("consume", "--exclusive", "--records")):
        with pytest.raises(SystemExit):
            main(["peer", mode, "--help"])
        text = capsys.readouterr().out
        assert all(words in text for words in (mine, "--trace", f"example: sluice peer {mode}"))
        assert others not in text


def test_an_option_of_the_other_mode_is_passed_over():
    producer = End("serve", records=1, exclusive=7, retriggers="any", host="any")
    consumer = End("consume", records=5, string_pad="any", id_seed=3, **offer_of(producer.next_event()))
    assert consumer.done()["channels"][0]["records"] == 1
    producer.done()


# -- processes -----------------------------------------------------------------------------------------------------


@pytest.fixture
def peer():
    with contextlib.ExitStack() as running:
        yield lambda mode, **options: running.enter_context(Peer("sluice", mode, **options))


@pytest.mark.slow
def test_two_processes_say_the_same_and_nothing_on_stderr(peer):
    producer = peer("serve", records=1000, partitions=2)
    consumer = peer("consume", **producer.offer())
    assert [channel["records"] for channel in consumer.done()["channels"]] == [1000, 1000]
    producer.done()
    assert (producer.stderr(), consumer.stderr()) == ("", "")


@pytest.mark.slow
def test_ctrl_c_ends_both_ends_with_status_130_and_one_sentence(peer):
    producer = peer("serve", records=10**9, barrier_every=1000)
    consumer = peer("consume", delay_us=1000, **producer.offer())
    until_connected(producer, consumer)
    for end in (consumer, producer):  # as a terminal does: both at once
        os.kill(end.pid, signal.SIGINT)
    for end in (consumer, producer):
        assert (end.exit_code(), end.stderr()) == (130, "interrupted before it was done\n")
    assert [event["event"] for event in producer.events] == ["listening"]


@pytest.mark.slow
def test_ctrl_c_before_anybody_has_come_is_status_130(peer):
    producer = peer("serve")
    producer.wait_for("produced")
    os.kill(producer.pid, signal.SIGINT)
    assert (producer.exit_code(), producer.stderr()) == (130, "interrupted before it was done\n")


@pytest.mark.slow
def test_a_consumer_that_is_killed_is_status_4_of_the_producer(peer):
    producer = peer("serve", records=10**9)
    consumer = peer("consume", delay_us=1000, **producer.offer())
    until_connected(producer, consumer)
    consumer.kill()
    assert producer.done(exit_code=4)["aborted"] is True


@pytest.mark.slow
def test_a_producer_that_is_killed_is_an_error_of_the_consumer(peer):
    producer = peer("serve", records=10**9)
    consumer = peer("consume", **producer.offer())
    until_connected(producer, consumer)
    producer.kill()
    done = consumer.done(exit_code=1)
    assert "Connection unexpectedly closed by remote task manager" in done["error"]
    assert done["pool_available_after"] == done["pool_total"]


@pytest.mark.slow
def test_it_listens_on_the_loopback_address_only(peer):
    producer = peer("serve")
    port = producer.offer()["port"]
    bound = [each.laddr for each in psutil.Process(producer.pid).net_connections() if each.status == "LISTEN"]
    assert bound == [("127.0.0.1", port)]


@pytest.mark.slow
def test_a_script_that_reads_one_line_and_leaves_is_no_error():
    command = [*PEER, "serve", "--records", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        offer = offer_of(json.loads(process.stdout.readline()))
        process.stdout.close()
        End("consume", **offer).done()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 0


def until_connected(producer, consumer):
    process = psutil.Process(producer.pid)
    while not any(each.status == "ESTABLISHED" for each in process.net_connections()):
        assert consumer.is_running, consumer.stderr()
