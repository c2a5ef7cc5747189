"""The entries of state packets in the Packed coding: sections 4 to 6 of the wire format."""

from bits import Malformed
from entries import Entry, Part, State, check_entries, check_set, read_set
from prediction import ratio
from rows import read_rows
from slots import KINDS, read_slots

UPDATE, NAMED, FULL, DESPAWN, SET_CHANGE, PART = range(6)


def read_packed(r, tick, client):
    """Reads the entries of a packet from its bits, against the states that the client holds."""
    pairs, set_before, entries = Pairs(tick), [], []
    if not r.left:
        return entries
    pairs.read_front(r)
    r.shift = read_shift(r)
    slots, how = read_slots(r, pairs.pairs[0].a1, client)
    for slot, kind in slots:
        client.check_slot(slot)
        if kind == PART:
            entries.append(Entry("part", slot, part=read_part(r)))
            continue
        if kind == DESPAWN:
            client.check_despawn(slot)
            r.note("left", r.bit())
            entries.append(Entry("despawn", slot, State(tick)))
            continue
        if kind == FULL:
            state = read_full(r, tick, slot, client, set_before)
            set_before = state.set
        else:
            state = read_against(r, kind, tick, slot, client, pairs)
        entries.append(Entry(KINDS[kind], slot, state))
    if r.left:
        raise Malformed("bits after the last entry")
    check_entries(entries, r.end)
    for e in entries:
        e.how = how
    return entries


def read_shift(r):
    """By how much the orders of residuals differ from the usual ones: section 4."""
    shift = (-1, -2, 1)[r.truncated(3)] if r.bit() else 0
    r.note("shift", shift)
    return shift


def read_full(r, tick, slot, client, set_before):
    """A state without baseline; also of assembled parts."""
    generation = r.exp_golomb(4)
    r.note("generation", generation)
    if generation > 0xFFFF:
        raise Malformed("generation")
    components = read_set(r, set_before, client.schema)
    check_set(components, slot, client.schema)
    return State(tick, generation, *read_rows(r, client.schema, components))


def read_against(r, kind, tick, slot, client, pairs):
    """An update or set change: the state against one baseline or two."""
    front = kind == UPDATE
    if kind == SET_CHANGE:
        front = r.bit() == 1
        r.note("front", "yes" if front else "no")
    pair = pairs.read(r, front)
    base1, base2 = client.baselines(slot, pair.a1, pair.a2)
    t = ratio(tick, pair.a1, pair.a2) if base2 else None
    components = base1.set
    if kind == SET_CHANGE:
        components = read_set(r, base1.set, client.schema)
        check_set(components, slot, client.schema)
    rows = read_rows(r, client.schema, components, base1.rows, base2.rows if base2 else None, t)
    return State(tick, base1.generation, *rows)


def read_part(r):
    """Section 9."""
    part = Part(*(r.exp_golomb(3) for _ in range(4)))
    part.check()
    r.note("part", "age %d, total %d, size %d, index %d" % (part.age, part.total, part.size, part.index))
    part.data = bytes(r.bits(8) for _ in range(part.length()))
    r.note("bytes", "%d bytes" % len(part.data))
    return part


class Pair:
    """A pair of baselines: A1 and, unless it is None, A2."""

    def __init__(self, a1, a2=None):
        self.a1, self.a2 = a1, a2

    def __eq__(self, other):
        return (self.a1, self.a2) == (other.a1, other.a2)

    def __str__(self):
        return "A1 = tick %d" % self.a1 + ("" if self.a2 is None else ", A2 = tick %d" % self.a2)


class Pairs:
    """The list of baseline pairs that the entities of a packet share: section 5."""

    def __init__(self, tick):
        self.tick, self.pairs = tick, []

    def read_front(self, r):
        """The pair before the entries."""
        self.pairs = [self.read_pair(r)]
        r.note("front", self.pairs[0])

    def read(self, r, front):
        n = len(self.pairs)
        if front:
            return self.use(0)
        if n > 1 and r.bit() == 0:
            position = 1 + r.bits((n - 2).bit_length())
            if position >= n:
                raise Malformed("position in the list")
            r.note("position", "%d: %s" % (position, self.pairs[position]))
            return self.use(position)
        pair = self.read_pair(r)
        r.note("pair", pair)
        if pair in self.pairs:
            return self.use(self.pairs.index(pair))
        self.pairs.insert(2, pair)
        del self.pairs[5:]
        return pair

    def use(self, position):
        """A pair changes places with the one before it, but never with the front."""
        pair = self.pairs[position]
        if position > 1:
            self.pairs[position - 1], self.pairs[position] = self.pairs[position], self.pairs[position - 1]
        return pair

    def read_pair(self, r):
        """A new pair."""
        age = r.residual(3, 8)
        if age == 0:
            raise Malformed("age of a baseline")
        a1 = (self.tick - age) & 0xFFFFFFFF
        if r.bit() == 0:
            return Pair(a1, (a1 - a1 % 2 - 2) & 0xFFFFFFFF)
        if r.bit() == 0:
            return Pair(a1)
        return Pair(a1, (a1 - 1 - r.bits(5)) & 0xFFFFFFFF)
