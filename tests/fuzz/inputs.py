"""What the fuzz feeds: who is there, and steps that anybody takes, as a value and as a file.

A step is who, what, and with what: `("consumer", "receive", b"...")`, `("producer", "write", 0, 12)`. Who there is and
what they can do stands in `ends.py`. A file is JSON with bytes in hex, so that it can be read and shortened by hand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from refimpl.config import Config, FlinkVersion

__all__ = ["CONSUMER", "NUM_CHANNELS", "NUM_VARIANTS", "PRODUCER", "REQUESTS", "RESPONSES", "Input", "Setup", "Step"]

FORMAT = "sluice-fuzz/1"
PRODUCER, CONSUMER, REQUESTS, RESPONSES = "producer", "consumer", "requests", "responses"
NUM_CHANNELS = 3

Step = tuple[str | int | bytes, ...]


@dataclass(frozen=True, slots=True)
class Setup:
    """How much memory everybody has, and how patient they are. Without credits all buffers are floating ones."""

    config: Config
    num_exclusive: int
    num_floating: int


_SEGMENT_SIZES = (16, 8, 29, 64)
_BACKOFFS_MS = ((100, 10_000), (0, 0), (100, 150), (1, 1))
_FRAMES_AND_EVENTS_BYTES = ((1_024, 1_024), (2**20, 1_024), (4_096, 4_096), (65_536, 65_536))
_NUM_EXCLUSIVE = (2, 1)
_NUM_FLOATING = (2, 0, 1, 4)
_IS_CREDIT_BASED = (True, True, True, False)
_MOST_CHANNELS = (*[65_536] * 7, 2)
NUM_VARIANTS = 4 * 4 * 4 * 2 * 4 * 4 * 8


@dataclass(frozen=True, slots=True)
class Input:
    """One run: which ends there are (`world` is one of them, or "both"), their setup by number, and the steps."""

    world: str
    version: FlinkVersion
    variant: int
    steps: tuple[Step, ...]
    shortcuts: bool = False

    @property
    def setup(self) -> Setup:
        """The setup with number `variant`."""
        rest, segment = divmod(self.variant, len(_SEGMENT_SIZES))
        rest, backoff = divmod(rest, len(_BACKOFFS_MS))
        rest, limit = divmod(rest, len(_FRAMES_AND_EVENTS_BYTES))
        rest, exclusive = divmod(rest, len(_NUM_EXCLUSIVE))
        rest, floating = divmod(rest, len(_NUM_FLOATING))
        initial_ms, max_ms = _BACKOFFS_MS[backoff]
        max_frame_bytes, max_event_bytes = _FRAMES_AND_EVENTS_BYTES[limit]
        rest, credit = divmod(rest, len(_IS_CREDIT_BASED))
        is_credit_based = _IS_CREDIT_BASED[credit]
        # An honest consumer would ask for them all.
        most_channels = _MOST_CHANNELS[rest % len(_MOST_CHANNELS)] if self.world == PRODUCER else _MOST_CHANNELS[0]
        config = Config(
            segment_size_bytes=_SEGMENT_SIZES[segment],
            flink_version=self.version,
            credit_based=is_credit_based,
            max_channels_per_connection=most_channels,
            max_frame_bytes=max_frame_bytes,
            max_event_bytes=max_event_bytes,
            request_backoff_initial_ms=initial_ms,
            request_backoff_max_ms=max_ms,
            shortcuts=self.shortcuts,
        )
        num_exclusive, num_floating = _NUM_EXCLUSIVE[exclusive], _NUM_FLOATING[floating]
        return Setup(config, num_exclusive, num_floating) if is_credit_based else Setup(config, 0, 1 + num_floating)

    @property
    def num_bytes(self) -> int:
        """How many bytes the ends are handed; a flood's come often."""
        return sum(
            len(part) * (int(step[-1]) if step[1] == "flood" else 1)
            for step in self.steps
            for part in step
            if isinstance(part, bytes)
        )

    def to_json(self) -> str:
        steps = [[part.hex() if isinstance(part, bytes) else part for part in step] for step in self.steps]
        head = {"format": FORMAT, "world": self.world, "version": self.version.value, "variant": self.variant}
        lines = ",\n".join(f"  {json.dumps(step)}" for step in steps)
        return f'{json.dumps(head)[:-1]}, "steps": [\n{lines}\n]}}\n'

    @classmethod
    def from_json(cls, text: str) -> Input:
        """The input in a file.

        Raises:
            ValueError: it is none.
        """
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise ValueError(f"the format is {found['format']}, not {FORMAT}")
            steps = tuple((who, what, *map(_argument, rest)) for who, what, *rest in found["steps"])
            return cls(str(found["world"]), FlinkVersion(found["version"]), int(found["variant"]), steps)
        except (KeyError, TypeError) as error:
            raise ValueError(f"an input has no {error}") from error


def _argument(value: str | int) -> int | bytes:
    return bytes.fromhex(value) if isinstance(value, str) else int(value)
