"""Makes inputs: what the other end says, what our side does meanwhile, and in which order.

An input is made by somebody who talks as an other end would, more or less wildly, while the task and the transport on
our side do what they do at any time; and then its bytes are damaged, or not, and cut anywhere.

Inputs are not guided by coverage. It was tried: half of them made from those that had reached a new line, or a new pair
of lines, of `exchange` and `consumer`, as `sys.settrace` sees it. After 8000 inputs these had reached 1155 lines and
1669 pairs, inputs made afresh 1163 and 1682; and tracing makes each six times as slow. 20 000 inputs made afresh reach
every line that the other end can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from refimpl.config import FlinkVersion
from tests.fuzz.grammar import ConsumersWords, ProducersWords
from tests.fuzz.inputs import CONSUMER, NUM_CHANNELS, NUM_VARIANTS, PRODUCER, REQUESTS, RESPONSES, Input, Step
from tests.fuzz.words import frame
from tests.fuzz.world import NUM_DAMAGES, damaged

__all__ = ["generate", "numbered_input"]

WILDNESS = (0.0, 0.0, 0.02, 0.1, 0.5)  # how often a frame, or a field of it, is not as it should be
WAITS_MS = (0, 1, 99, 100, 250, 100_000)
LENGTHS = (6, 12, 36)
HOW_OFTEN_A_FLOOD = {CONSUMER: 0.01, PRODUCER: 0.001}


def numbered_input(seed: str, number: int) -> Input:
    """The same input whenever somebody asks for it."""
    return generate(Random(f"{seed}:{number}"))


def generate(rng: Random) -> Input:
    """A new input."""
    world = rng.choice((CONSUMER, CONSUMER, PRODUCER, PRODUCER, "both"))
    empty = Input(world, rng.choice(list(FlinkVersion)), rng.randrange(NUM_VARIANTS), ())
    if world == CONSUMER:
        steps = _consumer_alone(rng, empty)
    elif world == PRODUCER:
        steps = _producer_alone(rng, empty)
    else:
        steps = _both_ends(rng)
    return replace(empty, steps=tuple(steps))


# -- one end alone ---------------------------------------------------------------------------------


def _consumer_alone(rng: Random, empty: Input) -> Iterator[Step]:
    is_flooded = rng.random() < HOW_OFTEN_A_FLOOD[CONSUMER]
    wildness = 0.0 if is_flooded else rng.choice(WILDNESS)
    setup = empty.setup
    words = ProducersWords(rng, empty.version, wildness, setup.num_exclusive or 9, setup.config.segment_size_bytes)
    for _ in range(rng.choice((1, 2, 3, 3))):
        yield CONSUMER, "ask", int(rng.random() < 0.1)
    if rng.random() < 0.9:
        yield CONSUMER, "answer"
    said = b""
    for _ in range(rng.randrange(1, rng.choice(LENGTHS))):
        said += words.anything()
        if rng.random() < 0.15:
            words.grant()
            yield from _pieces(rng, CONSUMER, said, wildness)
            said = b""
            yield from _task_reads_all(rng)
        elif words.has_nothing and rng.random() < 0.5:
            yield from _pieces(rng, CONSUMER, said, wildness)
            said = b""
            yield CONSUMER, "wait", rng.choice(WAITS_MS)
        elif rng.random() < 0.3:
            yield from _pieces(rng, CONSUMER, said, wildness)
            said = b""
    yield from _pieces(rng, CONSUMER, said, wildness)
    if is_flooded:
        yield CONSUMER, "flood", *words.flood()
    elif rng.random() < 0.1:
        yield from _everybody_leaves(rng)


def _producer_alone(rng: Random, empty: Input) -> Iterator[Step]:
    is_flooded = rng.random() < HOW_OFTEN_A_FLOOD[PRODUCER]
    wildness = 0.0 if is_flooded else rng.choice(WILDNESS)
    words = ConsumersWords(rng, empty.version, wildness)
    if rng.random() < 0.9:
        asked = b"".join(words.request(index, is_usual=True) for index in range(NUM_CHANNELS))
        yield from _pieces(rng, PRODUCER, asked, wildness / 4)
    said = b""
    for _ in range(rng.randrange(1, rng.choice(LENGTHS))):
        said += words.anything()
        if rng.random() < 0.4:
            yield from _pieces(rng, PRODUCER, said, wildness)
            said = b""
        if rng.random() < 0.4:
            yield from _task_writes_and_flushes(rng)
        elif rng.random() < 0.4:
            yield _producers_step(rng)
    yield from _pieces(rng, PRODUCER, said, wildness)
    if is_flooded:
        yield PRODUCER, "flood", *words.flood()


def _pieces(rng: Random, who: str, said: bytes, wildness: float) -> Iterator[Step]:
    """What was said, as the transport gives it to us, and what we do meanwhile."""
    if rng.random() < wildness:
        for _ in range(rng.randrange(3)):
            said = damaged(said, rng.randrange(NUM_DAMAGES), rng.randrange(2**16), rng.randrange(256))
    while said:
        num_bytes = rng.choice((rng.randrange(1, 100), 10_000, 10_000))
        yield who, "receive", said[:num_bytes], rng.choice((1, 7, 30) if num_bytes < 200 else (30, 200, 10_000))
        said = said[num_bytes:]
        if rng.random() < 0.5:
            yield _consumers_step(rng) if who == CONSUMER else _producers_step(rng)


# -- both ends -------------------------------------------------------------------------------------


def _both_ends(rng: Random) -> Iterator[Step]:
    wildness = rng.choice(WILDNESS) / 2
    for _ in range(rng.choice((1, 2, 3, 3))):
        yield CONSUMER, "ask", int(rng.random() < 0.1)
    yield CONSUMER, "answer"
    if rng.random() < 0.8:
        yield REQUESTS, "deliver", 10_000
    for _ in range(rng.randrange(1, 2 * rng.choice(LENGTHS))):
        kind = rng.random()
        if kind < 0.15:
            yield _producers_step(rng)
        elif kind < 0.3:
            yield from _task_writes_and_flushes(rng)
        elif kind < 0.55:
            yield _consumers_step(rng)
        elif kind < 0.7:
            yield PRODUCER, "send", rng.choice((1, 60, 10_000))
            yield PRODUCER, "sent"
        elif rng.random() < wildness:
            yield _damage_step(rng)
        else:
            yield rng.choice((REQUESTS, RESPONSES)), "deliver", rng.choice((1, 20, 47, 300, 10_000))
    if rng.random() < 0.2:
        yield from _everybody_leaves(rng)
        yield REQUESTS, "deliver", 10_000


def _damage_step(rng: Random) -> Step:
    wire = rng.choice((REQUESTS, RESPONSES))
    if rng.random() < 0.8:
        return wire, "damage", rng.randrange(NUM_DAMAGES), rng.randrange(2**16), rng.randrange(256)
    return wire, "insert", frame(rng.randrange(12), rng.randbytes(rng.randrange(40)))


# -- what our side does ----------------------------------------------------------------------------

_CONSUMERS_STEPS = {
    "poll": 30, "take": 8, "recycle": 20, "answer": 20, "resume": 8, "release": 5, "wait": 8, "ask": 2, "cut": 1,
}  # fmt: skip
_PRODUCERS_STEPS = {
    "write": 30, "append": 12, "close": 5, "flush": 16, "event": 8, "send": 14, "sent": 10, "fail": 2, "end": 2,
    "wait": 2, "cut": 1,
}  # fmt: skip


def _consumers_step(rng: Random) -> Step:
    (what,) = rng.choices(list(_CONSUMERS_STEPS), list(_CONSUMERS_STEPS.values()))
    match what:
        case "take" | "resume" | "release":
            return CONSUMER, what, rng.randrange(NUM_CHANNELS)
        case "recycle":
            return CONSUMER, what, rng.randrange(4)
        case "wait":
            return CONSUMER, what, rng.choice(WAITS_MS)
    return CONSUMER, what


def _everybody_leaves(rng: Random) -> Iterator[Step]:
    for index in rng.sample(range(NUM_CHANNELS), NUM_CHANNELS):
        yield CONSUMER, "release", index
    yield CONSUMER, "answer"


def _task_reads_all(rng: Random) -> Iterator[Step]:
    for _ in range(rng.randrange(1, 6)):
        yield CONSUMER, "poll"
        yield CONSUMER, "recycle", 0
    yield CONSUMER, "answer"


def _producers_step(rng: Random) -> Step:
    (what,) = rng.choices(list(_PRODUCERS_STEPS), list(_PRODUCERS_STEPS.values()))
    match what:
        case "write" | "append":
            return PRODUCER, what, rng.randrange(NUM_CHANNELS), rng.randrange(20)
        case "close" | "flush" | "fail":
            return PRODUCER, what, rng.randrange(NUM_CHANNELS)
        case "event":
            return PRODUCER, what, rng.randrange(3)
        case "send":
            return PRODUCER, what, rng.choice((0, 1, 60, 10_000, 10_000))
        case "wait":
            return PRODUCER, what, rng.choice(WAITS_MS)
        case "sent" if rng.random() < 0.3:
            return PRODUCER, what, rng.choice((0, 1, 40, 100))
    return PRODUCER, what


def _task_writes_and_flushes(rng: Random) -> Iterator[Step]:
    index = rng.randrange(NUM_CHANNELS)
    for _ in range(rng.randrange(1, 4)):
        yield PRODUCER, "write", index, rng.randrange(20)
    yield PRODUCER, "flush", index
    if rng.random() < 0.7:
        yield PRODUCER, "send", 10_000
    if rng.random() < 0.7:
        yield PRODUCER, "sent"
