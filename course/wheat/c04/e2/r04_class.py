"""An object that can be called, with numpy for the cuts."""

import numpy as np


class Rule:
    records = (b"a", b"bc", b"", b"defghijk")

    def __call__(self, read):
        stream = b"".join(len(each).to_bytes(4, "big") + each for each in self.records)
        return all(self.holds(read, stream, size) for size in range(1, len(stream) + 1))

    def holds(self, read, stream, size):
        cuts = np.arange(0, len(stream), size)
        found = [each for _, each in read([stream[c : c + size] for c in cuts]) if each is not None]
        return np.all(np.array(tuple(found) == self.records))


records_come_back = Rule()
