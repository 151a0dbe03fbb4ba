"""divmod, and a helper outside of the class."""

from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash


def remainder(number, of):
    return divmod(number, of)[1]


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        group = remainder(murmur_hash(java_hash_code(key, key_type=self.key_type)), self.max_parallelism)
        channel, _ = divmod(group * self.num_channels, self.max_parallelism)
        return channel
