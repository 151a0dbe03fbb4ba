"""Fairness: on a connection, a channel with data and credit waits at most one round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from refimpl.exchange.producer_credit import ReaderSnapshot

__all__ = ["FairnessLaw"]


class FairnessLaw:
    """The turns on one connection. Between two calls of `check` there must be one step."""

    def __init__(self) -> None:
        self._said: dict[bytes, int] = {}
        self._turns: dict[bytes, Counter[bytes]] = {}  # of the others, for each that waits

    def check(self, readers: Mapping[bytes, ReaderSnapshot], may_speak: Iterable[bytes]) -> None:
        """`readers` are the producer's, by receiver; `may_speak` have data and credit, or an event."""
        said = {receiver: reader.last_sequence_number for receiver, reader in readers.items()}
        spoke = [receiver for receiver, number in said.items() if number != self._said.get(receiver, -1)]
        turns: dict[bytes, Counter[bytes]] = {}
        for waiting in may_speak:
            assert readers[waiting].is_enqueued, f"{waiting.hex()} may speak and is not in the line"
            turns[waiting] = Counter()
            if waiting in self._turns and waiting not in spoke:
                turns[waiting] = self._turns[waiting]
                turns[waiting].update(spoke)
            for other in spoke:
                assert turns[waiting][other] <= 1, f"{other.hex()} spoke twice while {waiting.hex()} waited"
        self._said, self._turns = said, turns
