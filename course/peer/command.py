"""`sluice peer serve|consume`: what the two ends are told, and how they end.

What one end does not use is taken and passed over if the other end uses it, so a script can tell both the same.
"""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from refimpl.drivers.transport import resolve_address
from refimpl.errors import USER_CODE_RAISES, ConfigError
from refimpl.exchange.messages import ProducerId, ResultPartitionId

__all__ = ["add_arguments", "run"]

FAILED, WRONG_USE, TIME_LIMIT = 1, 2, 3
MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
_PARTITION = re.compile(r"([0-9a-fA-F]{32})([0-9a-fA-F]{8}):([0-9a-fA-F]{32})")
_REQUIRED = "required"
_Add = Callable[..., None]
_JSON = "Prints one JSON object per line; the last one has counts, CRC-32, credit, and whether buffers were lost."

_EPILOG = """example: sluice peer {mode}{words}

exit status: 0 all is well, 1 it is not, 2 wrong use, 3 the time limit has come, 130 interrupted{more}"""


# -- words to values -----------------------------------------------------------------------------------------------


def _whole(least: int, most: int = MAX_LONG) -> Callable[[str], int]:
    """Make what reads a whole number from `least` to `most`."""

    def read(word: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,19}", word) and least <= int(word) <= most:
            return int(word)
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number from {least} to {most}")

    return read


def _partitions(words: str) -> list[ResultPartitionId]:
    """Read `partition_id:producer_id,...` as `serve` prints them."""
    found = []
    for word in words.split(","):
        match = _PARTITION.fullmatch(word.strip())
        if match is None:
            raise argparse.ArgumentTypeError(
                f"{word!r} is no partition: give partition_id:producer_id, 40 and 32 hexadecimal digits, as the other "
                f"end prints them"
            )
        data_set, number, producer = map(bytes.fromhex, match.groups())
        found.append(ResultPartitionId(data_set, int.from_bytes(number, "big"), ProducerId(producer)))
    return found


def _subpartitions(words: str) -> list[int]:
    return [_whole(0, MAX_INT)(word.strip()) for word in words.split(",")]


def _host(word: str) -> str:
    try:
        resolve_address(word, 0, is_protected=False)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(f"{word!r} is no address of this machine, and no other is reached") from error
    return word


# -- options -------------------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice peer`."""
    parser.description = (
        "Be one end of a conversation in Flink's protocol: produce records of which every value is known, or read\n"
        "them and check each. The other end is one of ours, or the real Flink 1.11.4 under the same options\n"
        "(course/flink/FlinkPeer.java). Both ends are on this machine."
    )
    modes = parser.add_subparsers(title="modes", metavar="MODE", dest="mode", required=True)
    _add_serve(modes)
    _add_consume(modes)


def _add_serve(modes: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    more = ",\n4 all consumers went away before the end"
    add = _add_mode(modes, "serve", "produce records, and wait until all are consumed", " --records 100000", more)
    add("port", 0, _whole(0, 65_535), "port of 127.0.0.1 to listen at; 0 takes one that is free")
    add("partitions", 1, _whole(1, 10_000), "partitions, each with a thread")
    add("subpartitions", 1, _whole(1, 10_000), "subpartitions of each")
    add("records", 1000, _whole(0), "records of each subpartition")
    _add_shared(add)
    add("timestamps", "yes", ["yes", "no"], "whether stream records have a time")
    add("string-pad", 64, _whole(0, 100_000_000), "strings get up to so many letters more")
    add("watermark-every", 0, _whole(0), "a watermark after so many rounds; stream elements only")
    add("barrier-every", 0, _whole(0), "a checkpoint barrier after so many rounds")
    add("barrier-mode", "exactly_once", ["exactly_once", "at_least_once"], "whether barriers are aligned")
    add("buffers-per-channel", 2, _whole(1, MAX_INT), "buffers a partition may use for each subpartition")
    add("floating", 8, _whole(0, MAX_INT), "and in addition")
    add("max-buffers-per-channel", 10, _whole(1, MAX_INT), "has no effect here, as in Flink's peer")
    add("flush-ms", 100, _whole(-1, MAX_INT), "flush so often; 0: after each record, -1: never")
    add("delay-us", 0, _whole(0, MAX_INT), "pause after each round")
    add("id-seed", 1, _whole(-MAX_LONG), "makes the ids of the partitions")
    _pass_over(add, "host", "subpartition-list", "exclusive", "stop-after", "retriggers")


def _add_consume(modes: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    words = " --port 40123 --partitions PARTITION_ID:PRODUCER_ID"
    add = _add_mode(modes, "consume", "read records to the end, and check them", words)
    add("host", "127.0.0.1", _host, "where the producer listens", "HOST")
    add("port", _REQUIRED, _whole(1, 65_535), "and at which port")
    add("partitions", _REQUIRED, _partitions, "partition_id:producer_id,... to read, a channel each", "IDS")
    add("subpartitions", 1, _whole(1, 10_000), "read so many subpartitions, a gate with a thread each")
    add("subpartition-list", None, _subpartitions, "read these instead, such as 1,3", "LIST")
    _add_shared(add)
    add("exclusive", 2, _whole(1, MAX_INT), "buffers of each channel, and so its first credit")
    add("floating", 8, _whole(1, MAX_INT), "buffers that the channels of a gate share")
    add("delay-us", 0, _whole(0, MAX_INT), "pause after each record")
    add("stop-after", -1, _whole(-1), "leave after so many records of a gate; -1: at the end")
    add("retriggers", 20, _whole(0), "ask so many times again for partitions that are not there")
    _pass_over(
        add,
        "records",
        "timestamps",
        "string-pad",
        "watermark-every",
        "barrier-every",
        "barrier-mode",
        "buffers-per-channel",
        "max-buffers-per-channel",
        "flush-ms",
        "id-seed",
    )


def _add_mode(
    modes: argparse._SubParsersAction[argparse.ArgumentParser], mode: str, text: str, words: str, more: str = ""
) -> _Add:
    """Begin the options of a mode; return what adds one."""
    parser = modes.add_parser(
        mode,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.\n\n{_JSON}",
        allow_abbrev=False,
        epilog=_EPILOG.format(mode=mode, words=words, more=more),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(name: str, default: object, kind: Any, meaning: str, metavar: str = "N") -> None:
        said = meaning if default in {None, _REQUIRED} else f"{meaning} (%(default)s)"
        how = {"choices": kind} if isinstance(kind, list) else {"type": kind, "metavar": metavar}
        parser.add_argument(f"--{name}", default=default, required=default is _REQUIRED, help=said, **how)

    return add


def _add_shared(add: _Add) -> None:
    """Add what both ends have."""
    add("type", "long", ["long", "string"], "type of the values")
    add("elements", "raw", ["raw", "stream"], "values alone, or as elements of a stream")
    add("segment-size", 32_768, _whole(1, 1 << 30), "bytes of a buffer; the consumer's hold the producer's")
    add("pool-segments", 0, _whole(0, MAX_INT), "buffers there are in all; 0: as many as are needed")
    add("trace", None, str, "file for one line of JSON per frame", "FILE")
    add("max-seconds", 120, _whole(0, MAX_INT), "time limit")


def _pass_over(add: _Add, *names: str) -> None:
    """Take options of the other mode."""
    for name in names:
        add(name, None, str, argparse.SUPPRESS)


# -- the command ---------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace, out: TextIO | None = None) -> int:
    """Run `sluice peer`, speaking to `out` or else stdout; return the exit status."""
    from course.peer.consuming import consume
    from course.peer.host import Speaker, TimeLimitError
    from course.peer.serving import serve
    from course.peer.tap import Tap

    try:
        trace = Path(arguments.trace).open("w", encoding="utf-8") if arguments.trace else None  # noqa: SIM115
    except OSError as error:
        print(f"--trace {arguments.trace} cannot be written: {error.strerror}", file=sys.stderr)
        return WRONG_USE
    tap, speaker = Tap(trace), Speaker(out or sys.stdout)
    try:
        return {"serve": serve, "consume": consume}[arguments.mode](arguments, tap, speaker)
    except TimeLimitError as error:
        speaker.say("error", error=str(error))
        return TIME_LIMIT
    except USER_CODE_RAISES as error:  # whatever it is, the script that drives us is told
        speaker.say("error", error="".join(traceback.format_exception(error)))
        return FAILED
    finally:
        tap.close()
