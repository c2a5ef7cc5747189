"""The schema text: section 12 of the wire format."""

import re

from checksum import fingerprint
from quantisers import make

HEADER = "arche-replicate schema 1"


class Component:
    """A component or a resource: a name and its fields, one for each code (four for a rotation)."""

    def __init__(self, name, resource=False):
        self.name, self.resource, self.fields = name, resource, []

    def freeze(self):
        self.width = sum(f.width for f in self.fields)
        self.moves = any(f.kind in ("linear", "wrap", "quat") and f.width for f in self.fields)

    def check(self, row):
        """Raises Malformed if the row has a code that is not valid for its field."""
        i = 0
        while i < len(row):
            n = self.fields[i].codes  # that make up one value
            self.fields[i].check(row[i : i + n])
            i += n

    def values(self, row):
        """The values of a row, one for each line of the schema and element of an array."""
        i, values = 0, []
        while i < len(row):
            n = self.fields[i].codes
            values.append(self.fields[i].value(row[i : i + n]))
            i += n
        return values


class Field:
    """One code of a row, with its coding and its value."""

    def __init__(self, path, quantiser):
        self.path, self.quantiser = path, quantiser
        self.kind, self.width, self.max = quantiser.kind, quantiser.width, quantiser.max
        self.bits, self.codes = getattr(quantiser, "bits", None), quantiser.codes
        self.check, self.value = quantiser.check, quantiser.value
        self.orders = quantiser.orders  # that replace those of the codes of residuals

    def show(self, code):
        return show_code(self.kind, code)


def show_code(kind, code):
    """A code as text: numbers, index and three codes of a rotation, slot and generation, bytes in hex."""
    if kind == "quat":
        return ":".join(map(str, code))
    if kind == "reference":
        return "%d/%d" % code if code else "-"
    if kind == "bytes":
        return '"' + code.hex() + '"'
    return str(code)


class Schema:
    def __init__(self, text):
        self.text, self.fingerprint = text, fingerprint(text)
        self.components, current = [], None
        lines = text.split("\n")
        if lines[0] != HEADER or lines[-1] != "":
            raise ValueError("no schema of this version")
        for line in lines[1:-1]:
            word, _, name = line.partition(" ")
            if word in ("component", "resource"):
                # Behind the name is how clients show the component between two states.
                current = Component(name.split(" ")[0], word == "resource")
                self.components.append(current)
            elif word in ("message", "input"):
                # These have numbers of their own, and are not in state packets.
                current = Component(name.split(" ")[0])
            elif line == "facets":
                current = Component("facets")  # the link, after all others
                current.fields.append(Field("facets", make("entity", "")))
                self.components.append(current)
            elif current is not None and line.startswith((current.name + " ", current.name + ".")):
                path, _, rest = line[len(current.name) :].partition(" ")
                current.fields += fields(current.name + path, rest)
            else:
                raise ValueError("schema line: " + line)
        for component in self.components:
            component.freeze()
        self.number_fields()
        self.resources = any(c.resource for c in self.components)

    def number_fields(self):
        """Numbers of fields in the schema: among all, and among linear, wrap and quat ones or the others."""
        counts = [0, 0]
        for component in self.components:
            for field in component.fields:
                i = field.kind in ("linear", "wrap", "quat")
                field.number, field.among = sum(counts), counts[i]
                counts[i] += 1


ARRAY = re.compile(r"((?:\[\d+\])*)(.*)")


def fields(path, rest):
    """The fields of a line: an array has one for every element, a unit vector has two."""
    kind, _, tag = rest.partition(" ")
    lengths, kind = ARRAY.fullmatch(kind).groups()
    lengths = [int(n) for n in re.findall(r"\d+", lengths)]
    if tag.startswith(("unit,", "quat,")):
        lengths.pop()  # [3] or [4] belongs to the type
    paths = [path]
    for n in lengths:
        paths = ["%s[%d]" % (p, i) for p in paths for i in range(n)]
    result = []
    for p in paths:
        quantiser = make(kind, tag)
        result += [Field(p, quantiser) for _ in range(quantiser.codes)]
    return result
