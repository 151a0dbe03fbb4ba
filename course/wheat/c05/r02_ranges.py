"""The ranges are written down when the channels are known, and searched."""

from bisect import bisect_right

from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash


class Selector(KeyGroupSelector):
    def setup(self, num_channels):
        super().setup(num_channels)
        self.starts = [-(-c * self.max_parallelism // num_channels) for c in range(num_channels)]

    def channel_of_key(self, key: object) -> int:
        return bisect_right(self.starts, self.group(key)) - 1

    def group(self, key):
        code = java_hash_code(key, self.key_type)
        return murmur_hash(code) % self.max_parallelism
