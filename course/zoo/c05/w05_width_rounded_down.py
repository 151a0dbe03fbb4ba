"""Each channel owns as many groups as the division says; the last one has the rest."""

from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        group = murmur_hash(java_hash_code(key, self.key_type)) % self.max_parallelism
        width = self.max_parallelism // self.num_channels
        return min(group // width, self.num_channels - 1)
