"""A table from group to channel, made with numpy."""

import numpy as np

from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        table = np.arange(self.max_parallelism) * self.num_channels // self.max_parallelism
        return table[murmur_hash(java_hash_code(key, self.key_type)) % len(table)]
