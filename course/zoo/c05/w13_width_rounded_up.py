"""Each channel owns max / n groups, rounded up, so that all have a place."""

from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        group = murmur_hash(java_hash_code(key, self.key_type)) % self.max_parallelism
        return group // -(-self.max_parallelism // self.num_channels)
