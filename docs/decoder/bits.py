"""Bits and codes: section 1 of the wire format."""


class Malformed(Exception):
    """A packet that must be refused. No packet raises anything else."""


class BitReader:
    """Reads a bit string. A read past the end raises Malformed.

    The bit string is one large little-endian integer, so reading n bits is a shift and a mask.
    """

    def __init__(self, data, unused=0, trace=None):
        self.value = int.from_bytes(data, "little")
        self.at = 0
        self.end = 8 * len(data) - unused
        self.trace = trace
        self.shift = 0  # of the orders of residuals: section 4
        self.noted = 0
        if self.end < 0 or self.value >> self.end:
            raise Malformed("unused bits of the last byte are not zero")

    @property
    def left(self):
        return self.end - self.at

    def bits(self, n):
        """A number of fixed width n."""
        if n > self.left:
            raise Malformed("read past the end")
        v = (self.value >> self.at) & ((1 << n) - 1)
        self.at += n
        return v

    def bit(self):
        return self.bits(1)

    def unary(self, limit):
        """Truncated unary: zeros, then a one unless their number is the limit."""
        v = 0
        while v < limit and not self.bits(1):
            v += 1
        return v

    def unary_ones(self, limit):
        """The same with ones and zeros exchanged: the symbols of section 7."""
        v = 0
        while v < limit and self.bits(1):
            v += 1
        return v

    def truncated(self, n):
        """One of n numbers in truncated binary."""
        k = length(n) - 1
        short = (2 << k) - n
        v = self.bits(k)
        return v if v < short else 2 * v + self.bits(1) - short

    def exp_golomb(self, k):
        q = 0
        while not self.bits(1):  # ends at the end of the packet at the latest
            q += 1
        return (1 << (q + k)) + self.bits(q + k) - (1 << k)

    def rice(self, k):
        q = self.unary(32)
        if q < 32:
            return (q << k) + self.bits(k)
        return (32 << k) + self.exp_golomb(k + 5)

    def residual(self, k, width):
        """Exp-Golomb with a limit, so that a large change costs little more than an absolute value."""
        k = min(k, width)
        limit = min(width - k, 10)
        q = self.unary(limit)
        if q < limit:
            return (((1 << q) - 1) << k) + self.bits(k + q)
        return self.bits(width)

    def note(self, name, meaning=""):
        """Names what was read since the last note, if there is a trace."""
        if self.trace is not None:
            n = self.at - self.noted
            bits = format((self.value >> self.noted) & ((1 << n) - 1), "0%db" % n)[::-1] if n else ""
            self.trace.append((name, bits, str(meaning)))
            self.noted = self.at


def length(x):
    """len(x) of the page: the bit length of x."""
    return x.bit_length()


def unzigzag(z):
    """Maps 0, 1, 2, 3, 4 to 0, -1, 1, -2, 2."""
    return -(z >> 1) - 1 if z & 1 else z >> 1


def signed(v, n):
    """The low n bits of v as a number in two's complement."""
    v &= (1 << n) - 1
    return v - (1 << n) if n and v >> (n - 1) else v


def div(a, b):
    """Integer division that truncates towards zero (Python's rounds down)."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def after(a, b):
    """How many ticks or sequences a is after b: the signed 32-bit difference."""
    return signed(a - b, 32)
