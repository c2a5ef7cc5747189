"""The values of codes: section 13 of the wire format.

A quantiser has kind, width and max as the table of that section gives them; how many codes make up a value, which is two
for unit vectors and else one; check, which raises Malformed if there is no such code; and value.
"""

import struct
from math import ceil, copysign, floor, frexp, isfinite, isqrt, sqrt

from bits import Malformed, signed


def make(kind, tag):
    """The quantiser of a schema line's type and tag."""
    keys = dict((k, v) for k, _, v in (t.partition("=") for t in tag.split(",") if t))
    if kind in FLOATS:
        q = make_float(kind, keys)
    elif kind in ("entity", "relation"):
        q = Reference()
    elif kind in ("string", "bytes"):
        q = Bytes(int(keys["max"]), kind == "bytes")
    elif kind == "bool":
        q = Bool()
    elif kind == "code":
        q = Code(int(keys["bits"]), int(keys["max"]) if "max" in keys else None)
    else:
        q = make_integer(kind, keys)
    q.orders = [int(d, 16) for d in keys.get("orders", "")]
    for hint in ("linear", "wrap", "counter", "flags"):
        if hint in keys:
            q.kind = hint
    if "jump" in keys:
        q.kind = "plain"
    return q


def make_integer(kind, keys):
    unsigned, bits = kind.startswith("u"), int(kind.lstrip("uint"))
    low, high = (0, (1 << bits) - 1) if unsigned else (-1 << (bits - 1), (1 << (bits - 1)) - 1)
    if "flags" in keys:
        return Flags(int(keys["flags"]))
    if "enum" in keys:
        return Integer(0, int(keys["enum"]) - 1)
    if "range" in keys:
        low, high = map(int, keys["range"].split(":"))
    return Integer(low, high, int(keys.get("step", 1)))


def make_float(kind, keys):
    if "half" in keys:
        return Half()
    if "angle" in keys:
        return Angle(kind, int(keys["bits"]), float(keys["period"]))
    if "unit" in keys:
        return Unit(kind, int(keys["bits"]))
    if "quat" in keys:
        return Quat(kind, int(keys["bits"]))
    if "range" in keys:
        low, high = map(float, keys["range"].split(":"))
        if "step" in keys:
            return Step(kind, low, high, float(keys["step"]))
        return Precision(kind, low, high, float(keys["precision"]))
    return Raw(kind)


FLOATS = {"float32": "<f", "float64": "<d"}


def rounded(kind, value):
    """A float64 rounded to the field's type."""
    return struct.unpack(FLOATS[kind], struct.pack(FLOATS[kind], value))[0]


class Quantiser:
    kind, codes = "plain", 1

    def __init__(self, most):
        self.max, self.width = most, most.bit_length()

    def check(self, codes):
        if not 0 <= codes[0] <= self.max:
            raise Malformed("code %s is above %d" % (codes[0], self.max))

    def value(self, codes):
        return codes[0]


class Code(Quantiser):
    """A code whose value a codec defines."""

    def __init__(self, bits, most):
        super().__init__((1 << bits) - 1 if most is None else most)
        self.width = bits


class Bool(Quantiser):
    def __init__(self):
        super().__init__(1)

    def value(self, codes):
        return bool(codes[0])


class Integer(Quantiser):
    def __init__(self, low, high, step=1):
        super().__init__(-((low - high) // step))
        self.low, self.high, self.step = low, high, step

    def value(self, codes):
        return min(self.low + codes[0] * self.step, self.high)


class Flags(Quantiser):
    kind = "flags"

    def __init__(self, bits):
        super().__init__((1 << bits) - 1)


class Raw(Quantiser):
    """The bits of the float."""

    def __init__(self, kind):
        self.format = FLOATS[kind]
        super().__init__((1 << 8 * struct.calcsize(self.format)) - 1)

    def value(self, codes):
        size = struct.calcsize(self.format)
        return struct.unpack(self.format, codes[0].to_bytes(size, "little"))[0]


class Half(Quantiser):
    def __init__(self):
        super().__init__(0xFBFF)

    def check(self, codes):
        super().check(codes)
        if codes[0] == 0x8000 or not isfinite(self.value(codes)):
            raise Malformed("no half")

    def value(self, codes):
        return struct.unpack("<e", codes[0].to_bytes(2, "little"))[0]


class Step(Quantiser):
    """A grid of fixed step."""

    kind = "linear"

    def __init__(self, kind, low, high, step):
        self.type, self.low, self.high = kind, low, high
        tolerance = (abs(low) + abs(high)) / step * 2.0**-50
        r = (high - low) / step
        n = n0 = nearest(r)
        if abs(r - n) > tolerance:
            n = n0 = ceil(r)
        self.grid = self.find_grid(low, step, tolerance, n0)
        if n > 1 and rounded(kind, self.at(n - 1)) >= min(high, rounded(kind, high)):
            n -= 1
        super().__init__(n)

    @staticmethod
    def find_grid(low, step, tolerance, n0):
        """o, d, e, D of the page."""
        for power in range(16):
            scale = 10**power
            o, d = nearest(low * scale), nearest(step * scale)
            if abs(o) > 2**53 or n0 * d > 2**53 or o + n0 * d > 2**53:
                break
            if d > 0 and o / scale == low and d / scale == step:
                return o, d, 1.0, float(scale)
        k = nearest(low / step)
        if abs(k - low / step) <= tolerance:
            return k, 1, step, 1.0
        return low, step, 1.0, 1.0

    def at(self, code):
        o, d, e, scale = self.grid
        return (o + code * d) * e / scale

    def value(self, codes):
        if codes[0] == 0:
            return rounded(self.type, self.low)
        if codes[0] == self.max:
            return rounded(self.type, self.high)
        return rounded(self.type, self.at(codes[0]))


def nearest(x):
    """The nearest integer; ties go away from zero."""
    return int(floor(abs(x) + 0.5)) * (1 if x >= 0 else -1)


class Precision(Quantiser):
    """A small float."""

    def __init__(self, kind, low, high, precision):
        self.type = kind
        if kind == "float32":
            low, high = rounded(kind, low), rounded(kind, high)
        self.low, self.high = low, high
        magnitude = max(-low, high)
        h = log2_floor(magnitude)
        if magnitude == 2.0**h:
            h -= 1
        self.m = 0
        while 2.0 ** (h - self.m - 1) > precision:
            self.m += 1
        g = precision
        if low > 0:
            g = max(precision, low)
        elif high < 0:
            g = max(precision, -high)
        self.l = min(log2_floor(g), h)
        self.first = -self.rank_up(-low) if low < 0 else self.rank_down(low)
        final = self.rank_up(high) if high > 0 else -self.rank_down(-high)
        super().__init__(final - self.first)

    def magnitude(self, rank):
        if rank < 1 << self.m:
            return rank * 2.0 ** (self.l - self.m)
        e, f = rank >> self.m, rank & ((1 << self.m) - 1)
        return (1 + f / 2.0**self.m) * 2.0 ** (self.l + e - 1)

    def rank_down(self, v):
        """The rank of the largest magnitude not above v, by bisection."""
        low, high = 0, 1
        while self.magnitude(high) <= v:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            if self.magnitude(middle) <= v:
                low = middle
            else:
                high = middle
        return low

    def rank_up(self, v):
        """The rank of the smallest magnitude not below v."""
        rank = self.rank_down(v)
        return rank if self.magnitude(rank) == v else rank + 1

    def value(self, codes):
        if codes[0] == 0:
            return self.low
        if codes[0] == self.max:
            return self.high
        rank = self.first + codes[0]
        return rounded(self.type, self.magnitude(abs(rank)) * (1 if rank >= 0 else -1))


def log2_floor(v):
    return frexp(v)[1] - 1


class Angle(Quantiser):
    kind = "wrap"

    def __init__(self, kind, bits, period):
        super().__init__((1 << bits) - 1)
        self.type, self.period = kind, period

    def value(self, codes):
        return rounded(self.type, signed(codes[0], self.width) * (self.period / 2.0**self.width))


class Unit(Quantiser):
    """A unit vector in octahedral coordinates: two codes."""

    kind, codes = "linear", 2

    def __init__(self, kind, bits):
        self.type, self.h = kind, (1 << (bits - 1)) - (2 if bits >= 4 else 1)
        super().__init__(2 * self.h)

    def check(self, codes):
        super().check(codes)
        super().check(codes[1:])
        x, y = codes[0] - self.h, codes[1] - self.h
        if abs(x) == self.h and y < 0 or abs(y) == self.h and x < 0:
            raise Malformed("unit vector")

    def value(self, codes):
        h = self.h
        x, y = codes[0] - h, codes[1] - h
        z = h - abs(x) - abs(y)
        if z < 0:
            x, y = (h - abs(y)) * (-1 if x < 0 else 1), (h - abs(x)) * (-1 if y < 0 else 1)
        size = sqrt(x * x + y * y + z * z)
        return [rounded(self.type, c / size) for c in (x, y, z)]


def quat_grid(bits):
    """S and N of the page."""
    h = (1 << (bits - 1)) - 1
    steps = max(isqrt(2 * h * h) // 2 * 2, 1)
    return steps, isqrt(steps * steps // 2) + 1


class Quat(Quantiser):
    """A rotation by its smallest three components: one field of four codes."""

    kind = "quat"

    def __init__(self, kind, bits):
        self.type, self.bits, self.width = kind, bits, 2 + 3 * bits
        self.steps, self.top = quat_grid(bits)
        super().__init__(2 * self.top)

    def rest(self, n):
        """The doubled square of the component left out."""
        return 2 * self.steps**2 - sum(self.steps**2 if abs(a) == self.top else 2 * a * a for a in n)

    def begin(self, n):
        """Where the cell of n begins, in half steps."""
        if n == self.top:
            return n - 1 + self.steps * sqrt(0.5) - 2**-10
        return max(2 * n - 1, 0)

    def check(self, codes):
        for c in codes[0][1:]:
            super().check([c])
        n = [abs(c - self.top) for c in codes[0][1:]]
        begin = [self.begin(a) for a in n]
        if self.rest(n) <= 0 or 4 * self.steps**2 - sum(b * b for b in begin) < max(begin) ** 2:
            raise Malformed("rotation")

    def value(self, codes):
        index, *kept = codes[0]
        n = [c - self.top for c in kept]
        values = [copysign(sqrt(0.5), a) if abs(a) == self.top else a / self.steps for a in n]
        values.insert(index, sqrt(self.rest(n) / (2 * self.steps**2)))
        return [rounded(self.type, v) for v in values]


class Reference(Quantiser):
    """The slot and generation of an entity, or none."""

    kind, width, max = "reference", 52, None

    def __init__(self):
        pass

    def check(self, codes):
        if codes[0] is not None and codes[0][0] >= 1 << 30:
            raise Malformed("slot of a reference")

    def value(self, codes):
        return None  # depends on the world


class Bytes(Quantiser):
    kind = "bytes"

    def __init__(self, most, trimmed):
        super().__init__(most)
        self.trimmed = trimmed

    def check(self, codes):
        if len(codes[0]) > self.max or self.trimmed and codes[0].endswith(b"\0"):
            raise Malformed("text")
