"""The contents of entries in either coding; component sets: section 6 of the wire format."""

from bits import Malformed


class State:
    """The state of a slot at a tick: a generation and the rows by component, or empty (rows is None)."""

    def __init__(self, tick, generation=0, rows=None, work=0):
        self.tick, self.generation, self.rows, self.work = tick, generation, rows, work

    @property
    def empty(self):
        return self.rows is None

    @property
    def set(self):
        return sorted(self.rows)


class Entry:
    """One entry: its effect on a slot."""

    def __init__(self, kind, slot, state=None, part=None):
        self.kind, self.slot, self.state, self.part = kind, slot, state, part
        self.how = ""  # "apart" or "range" if the packet is that, see slots.py


class Part:
    """A part of a full state that does not fit into a packet: section 9."""

    def __init__(self, age, total, size, index, data=b""):
        self.age, self.total, self.size, self.index, self.data = age, total, size, index, data

    def check(self):
        if self.total > 33792 or not 1 <= self.size <= 65507 or self.index * self.size >= self.total:
            raise Malformed("part")

    def length(self):
        return min(self.size, self.total - self.index * self.size)


FREE_WORK = 32768
SLOT_WORK = 32  # of a full state or a despawn


def check_entries(entries, bits):
    """Section 11, limits: the parts and the work of a packet with so many bits of entries."""
    if sum(e.part is not None for e in entries) > 1:
        raise Malformed("more than one part")
    work = sum(e.state.work for e in entries if e.state) + SLOT_WORK * sum(e.kind in ("full state", "despawn") for e in entries)
    if len(entries) > 1 and work > FREE_WORK + bits:
        raise Malformed("too much work")


def row_work(component, row, row1, row2):
    """The work of a row. row2 is None if there is no prediction; row is row1 itself if it is coded as unchanged."""
    if row1 is not None:
        if component.width == 0:
            return 0
        if row is row1 and (row2 is None or not component.moves or row1 == row2):
            return 1
    return sum(field_work(field) for field in component.fields)


def field_work(field):
    if field.kind == "quat":
        return 8
    if field.kind == "bytes":
        return 1 + (field.max + 3) // 4
    return 2 if field.kind == "reference" or field.width > 32 else 1


def read_set(r, reference, schema):
    """A component set, coded as the differences from a reference set."""
    differences = r.exp_golomb(0)
    components, at = set(reference), 0
    for _ in range(differences):  # at most one more than there are components
        at += r.exp_golomb(0)
        if at >= len(schema.components):
            raise Malformed("component beyond the schema")
        components ^= {at}
        at += 1
    components = sorted(components)
    r.note("set", " ".join(schema.components[c].name for c in components) or "empty")
    return components


def check_set(components, slot, schema):
    """Slot 0 contains the resources, if the schema has any, and other slots contain none."""
    for c in components:
        if schema.components[c].resource != (schema.resources and slot == 0):
            raise Malformed("resource or component in the wrong slot")
