"""What entries of state packets hold, whatever their coding; component sets: section 6 of the wire format."""

from bits import Malformed


class State:
    """The state of a slot at a tick: a generation and the rows by component, or empty (rows is None)."""

    def __init__(self, tick, generation=0, rows=None):
        self.tick, self.generation, self.rows = tick, generation, rows

    @property
    def empty(self):
        return self.rows is None

    @property
    def set(self):
        return sorted(self.rows)


class Entry:
    """One entry: what it does with its slot."""

    def __init__(self, kind, slot, state=None, part=None):
        self.kind, self.slot, self.state, self.part = kind, slot, state, part


class Part:
    """A part of a whole that fits no packet: section 9."""

    def __init__(self, age, total, size, index, data=b""):
        self.age, self.total, self.size, self.index, self.data = age, total, size, index, data

    def check(self):
        if self.total > 33792 or not 1 <= self.size <= 65507 or self.index * self.size >= self.total:
            raise Malformed("part")

    def length(self):
        return min(self.size, self.total - self.index * self.size)


def read_set(r, reference, schema):
    """A component set, coded as what differs from a reference set."""
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
    """Slot 0 holds the resources, if the schema has some, and other slots hold none."""
    for c in components:
        if schema.components[c].resource != (schema.resources and slot == 0):
            raise Malformed("resource or component in the wrong slot")
