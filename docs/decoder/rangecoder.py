"""The range coder of Compact, and the codes built from its decisions: section 17 of the wire format."""

from bits import Malformed

EVEN = 1 << 31  # a decision before anything was learnt


class RangeReader:
    """Reads decisions, whose probabilities are learnt, and raw bits.

    A decision is an entry of a list of the model, given by the list and the index.
    """

    def __init__(self, data, trace=None):
        self.data, self.place = data, 8
        self.width = (1 << 64) - 1
        self.at = int.from_bytes(data[:8].ljust(8, b"\0"), "big")
        if self.at == self.width:
            raise Malformed("range coder")
        self.trace, self.events = trace, []

    def narrowed(self):
        """After something was read: takes the next bytes, if need be."""
        while self.width < 1 << 32:
            four = self.data[self.place : self.place + 4].ljust(4, b"\0")
            self.place += 4
            if self.place > len(self.data) + 8:
                raise Malformed("read past the end")
            self.width <<= 32
            self.at = self.at << 32 | int.from_bytes(four, "big")

    def finish(self):
        """After the last entry: no bytes may be left."""
        if self.place < len(self.data):
            raise Malformed("bytes behind the end")

    def decision(self, decisions, index):
        d = decisions[index]
        part = (self.width >> 16) * (d >> 16)
        if self.at < part:
            bit, self.width, target = 1, part, (1 << 32) - (1 << 21)
        else:
            bit, self.width, target = 0, self.width - part, 1 << 21
            self.at -= part
        self.narrowed()
        n = d & 127
        rate = 655360 // (10 * n + 16)
        learnt = d + ((target - d) * rate >> 16)
        decisions[index] = learnt & ~127 | min(n + 1, 127)
        if self.trace is not None:
            self.events.append("%d:%d" % (bit, 100 * (d if bit else (1 << 32) - d) >> 32))
        return bit

    def bits(self, n):
        """A raw number of n bits, 16 at a time, the highest first."""
        value, left = 0, n
        while left > 0:
            some = min(left, 16)
            self.width >>= some
            v = self.at // self.width
            if v >> some:
                raise Malformed("range coder")
            self.at -= v * self.width
            self.narrowed()
            value, left = value << some | v, left - some
        if self.trace is not None and n:
            self.events.append("[%s]" % format(value, "0%db" % n))
        return value

    def exp_golomb(self, k):
        z = 0
        while not self.bits(1):
            z += 1
            if k + z > 32:
                raise Malformed("number")
        value = (1 << (k + z)) - (1 << k) + self.bits(k + z)
        if value >> 32:
            raise Malformed("number")
        return value

    def unary(self, decisions, limit):
        """Ones, then a zero unless their number is the limit."""
        n = 0
        while n < limit and self.decision(decisions, n):
            n += 1
        return n

    def length_code(self, width, decisions, first, m):
        """A number by its length, with m decisions from the first one on, and its bits but the highest."""
        n = 0
        while n < width and self.decision(decisions, first + min(n, m - 1)):
            n += 1
        return 1 << (n - 1) | self.bits(n - 1) if n else 0

    def tree(self, bits, decisions):
        node = 1
        for _ in range(bits):
            node = 2 * node + self.decision(decisions, node)
        return node - (1 << bits)

    def note(self, name, meaning=""):
        """Names what was read since the last note: decisions with their probability in percent, raw bits in brackets."""
        if self.trace is not None:
            self.trace.append((name, " ".join(self.events), str(meaning)))
            self.events = []
