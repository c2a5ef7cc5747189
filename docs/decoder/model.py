"""Models, which Compact learns: section 17 of the wire format."""

from collections import defaultdict
from copy import deepcopy

from rangecoder import EVEN


def decisions(n):
    return [EVEN] * n


def plain():
    return decisions(22)


class Listed:
    """A slot on the list of a model."""

    def __init__(self, slot, seen=1, back=(0, 0, 0)):
        self.slot, self.seen, self.back = slot, seen, back


class Number:
    """The decisions of an array for linear, wrap and quat fields."""

    def __init__(self):
        self.length = [decisions(12) for _ in range(24)]
        self.top = decisions(12)
        self.fine = [decisions(6) for _ in range(6)]
        self.side = decisions(6)
        self.trend = decisions(24)
        self.share = [[1 << 16] * 14, [1 << 16] * 14, [0] * 14]


class Full:
    """A decision for codes without a baseline, and the last code."""

    def __init__(self):
        self.decision, self.code = decisions(1), 0


class Row:
    """The decisions of an array for components."""

    def __init__(self):
        self.same, self.predicted, self.stopped = decisions(12), decisions(24), decisions(6)
        self.chart = decisions(1)


class Model:
    """Everything learnt. The tick is that of the packet after which it was kept."""

    def __init__(self, tick):
        self.tick, self.list = tick, []
        # Which slots.
        self.jump, self.other, self.again, self.end = decisions(1), decisions(8), decisions(16), decisions(4)
        self.gap = [decisions(16) for _ in range(2)]
        # What they hold.
        self.kind = [decisions(4) for _ in range(3)]
        self.name, self.own, self.recent = decisions(7), decisions(1), decisions(12)
        self.first, self.newer = decisions(3), decisions(1)
        self.ticks, self.two, self.span, self.third, self.fourth = (decisions(n) for n in (8, 3, 32, 16, 16))
        self.life, self.set, self.left = decisions(6), decisions(1), decisions(1)
        # Rows: arrays that no packet has used are not made.
        self.numbers = defaultdict(Number)
        self.plains = defaultdict(plain)
        self.fulls = defaultdict(Full)
        self.rows = defaultdict(Row)

    def copy(self):
        return deepcopy(self)
