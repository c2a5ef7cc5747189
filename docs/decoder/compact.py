"""The entries of state packets in the Compact coding: section 17 of the wire format."""

from bits import Malformed, after, length
from compactrows import RowReader
from entries import Entry, Part, State, check_entries, check_set, read_set
from model import Listed, Model
from rangecoder import RangeReader

UPDATE, FULL, DESPAWN, SET_CHANGE, PART = range(5)
KINDS = ["update", "full state", "despawn", "set change", "part"]


def read_compact(data, low, sequence, tick, client, trace=None):
    """Reads the entries of a packet, and returns them with the model after them, None if there are no bytes."""
    if not data:
        return [], None
    r = RangeReader(data, trace)
    back = 4 * r.exp_golomb(1) + low
    r.note("root", "the model of sequence %d" % (sequence - back) if back else "a new model")
    if back > 1023:
        raise Malformed("root")
    if back:
        root = client.model((sequence - back) & 0xFFFFFFFF)
        model, reference = root.copy(), root.tick
    else:
        model, reference = Model(tick), (tick - 1) & 0xFFFFFFFF
    slots, baselines, set_before, entries = Slots(r, model), BaselineReader(r, model, tick, reference), [], []
    while slots.find():
        if len(entries) == 2048:
            raise Malformed("too many entries")
        slot, state = slots.slot, slots.state
        r.note("slot", "%d, %s" % (slot, ["new", "listed", "carried before"][state]))
        client.check_slot(slot)
        kind = r.unary(model.kind[state], 4)
        r.note("kind", KINDS[kind])
        result = part = None
        if kind == DESPAWN:
            client.check_despawn(slot)
            result = State(tick)
            r.note("left", r.decision(model.left, 0))
        elif kind == PART:
            part = read_part(r)
        elif kind == FULL:
            result = read_full(r, model, tick, slot, state, client, set_before)
            set_before = result.set
        else:
            result = read_against(r, model, kind, tick, slots, client, baselines)
        entries.append(Entry(KINDS[kind], slot, result, part))
    r.note("end")
    r.finish()
    check_entries(entries, 8 * len(data))
    model.tick, model.list = tick, slots.list
    return entries, model


def read_full(r, model, tick, slot, state, client, set_before):
    generation = r.length_code(16, model.life, 0, 6)
    r.note("generation", generation)
    if r.decision(model.set, 0):
        components = set_before
        r.note("set", "that of the previous full state")
    else:
        components = read_set(r, set_before, client.schema)
    check_set(components, slot, client.schema)
    return State(tick, generation, *RowReader(r, model, client.schema, state).read(components))


def read_against(r, model, kind, tick, slots, client, baselines):
    slot, state = slots.slot, slots.state
    chosen = baselines.read(state, slots.listed)
    listed = slots.list[-1] if slots.list and slots.list[-1].slot == slot else None
    if listed is not None:
        listed.back = chosen.back
    ticks = chosen.ticks(tick)
    bases = client.baselines(slot, *ticks)
    components = bases[0].set
    if kind == SET_CHANGE:
        components = read_set(r, components, client.schema)
        check_set(components, slot, client.schema)
    rows = RowReader(r, model, client.schema, state, tick, ticks, bases).read(components)
    return State(tick, bases[0].generation, *rows)


def read_part(r):
    part = Part(*(r.exp_golomb(3) for _ in range(4)))
    part.check()
    r.note("part", "age %d, total %d, size %d, index %d" % (part.age, part.total, part.size, part.index))
    part.data = bytes(r.bits(8) for _ in range(part.length()))
    r.note("bytes", "%d bytes" % len(part.data))
    return part


class Slots:
    """Goes through the list of the root's model, and builds that of the packet's."""

    MOST = 2048

    def __init__(self, r, model):
        self.r, self.model = r, model
        self.root, self.list = model.list, []
        self.position, self.next = 0, 0
        self.fresh, self.again = 0, 0
        self.begun = False
        # Of the current entry: its slot, its state, and what the root's list has for it.
        self.slot, self.state, self.listed = 0, 0, None

    def find(self):
        """Finds the slot of the next entry; false at the end."""
        r, m = self.r, self.model
        if not self.begun:
            self.begun = True
            if self.root and r.decision(m.jump, 0):
                return self.jump(r.exp_golomb(4))
        room = None
        while self.position < len(self.root):
            listed = self.root[self.position]
            room = listed.slot - self.next
            if r.decision(m.other, 2 * min(length(room), 3) + self.fresh):
                break
            self.again = r.decision(m.again, listed.seen + 8 * self.again)
            self.position += 1
            self.next = listed.slot + 1
            if self.again:
                return self.carry(listed)
            self.leave(listed)
            room = None
        none = room is None
        if room == 0 or r.decision(m.end, 2 * none + self.fresh):
            for listed in self.root[self.position :]:
                self.leave(listed)
            return False
        if none:
            gap = r.length_code(30, m.gap[1], 0, 16)
        else:
            gap = r.length_code(length(room - 1), m.gap[0], 0, 16)
            if gap >= room:
                raise Malformed("gap")
        return self.take(self.next + gap)

    def jump(self, slot):
        """The first entry is far on: the listed slots before it are dropped."""
        while self.position < len(self.root) and self.root[self.position].slot < slot:
            self.position += 1
        if self.position < len(self.root) and self.root[self.position].slot == slot:
            self.position += 1
            self.next, self.again = slot + 1, 1
            return self.carry(self.root[self.position - 1])
        return self.take(slot)

    def carry(self, listed):
        """The entry is about a listed slot."""
        self.fresh = 0
        self.slot, self.state, self.listed = listed.slot, 1 + (listed.seen & 1), listed
        self.add(Listed(listed.slot, (2 * listed.seen + 1) & 7, listed.back))
        return True

    def take(self, slot):
        """The entry is about a slot that is not listed."""
        self.fresh, self.next = 1, slot + 1
        self.slot, self.state, self.listed = slot, 0, None
        self.add(Listed(slot))
        return True

    def leave(self, listed):
        """There is no entry about a listed slot."""
        seen = (2 * listed.seen) & 7
        if seen:
            self.add(Listed(listed.slot, seen, listed.back))

    def add(self, listed):
        if len(self.list) < self.MOST:
            self.list.append(listed)


class Baselines:
    """Up to four baselines; back are the ticks from A2, A3 and A4 to A1, 0 if there is none."""

    def __init__(self, a1, back=(0, 0, 0)):
        self.a1, self.back = a1, back

    def __eq__(self, other):
        return (self.a1, self.back) == (other.a1, other.back)

    def __str__(self):
        text = "A1 = tick %d" % self.a1
        for i, back in enumerate(self.back):
            if back:
                text += ", A%d = tick %d" % (i + 2, (self.a1 - back) & 0xFFFFFFFF)
        return text

    def ticks(self, tick):
        """A1 to A4 in a packet of a tick; None for missing ones."""
        if not 1 <= after(tick, self.a1) <= 255:
            raise Malformed("age of a baseline")
        return [self.a1] + [(self.a1 - back) & 0xFFFFFFFF if back else None for back in self.back]


class BaselineReader:
    """Reads the baselines of a packet's entries, which it guesses from those before."""

    RECENT = 4

    def __init__(self, r, model, tick, reference):
        self.r, self.m, self.tick, self.reference = r, model, tick, reference
        # Of each state, those of its last entry; and different ones of the packet, the newest first.
        self.last, self.recent = [None] * 3, []

    def read(self, state, listed):
        baselines = self.read_baselines(state, listed)
        self.last[state] = baselines
        self.recent = ([baselines] + [b for b in self.recent if b != baselines])[: self.RECENT]
        self.r.note("baselines", baselines)
        return baselines

    def first_guess(self, state, likely):
        """The first guess and the index of its decision."""
        last = self.last[state]
        if last is not None:
            return last, 3 if state == 2 and last != likely else state
        if state == 2:
            return likely, 4 + state
        return self.recent[0] if self.recent else Baselines(self.reference), 4 + state

    def read_baselines(self, state, listed):
        r, m = self.r, self.m
        likely = Baselines(self.reference, listed.back) if state == 2 else None
        guess, decision = self.first_guess(state, likely)
        if r.decision(m.name, decision):
            return guess
        wrong = [guess]
        if state == 2 and guess != likely:
            if r.decision(m.own, 0):
                return likely
            wrong.append(likely)
        others = [b for b in self.recent if b not in wrong]
        for i, guess in enumerate(others):
            if r.decision(m.recent, 4 * state + i):
                return guess
        if r.decision(m.first, state):
            a1 = self.reference
        else:
            newer = r.decision(m.newer, 0)
            v = r.length_code(32, m.ticks, 0, 8) + 1
            a1 = (self.reference + (v if newer else -v)) & 0xFFFFFFFF
        if not r.decision(m.two, state):
            return Baselines(a1)
        span, third = r.tree(5, m.span) + 1, r.tree(4, m.third)
        return Baselines(a1, (span, third, r.tree(4, m.fourth) if third else 0))
