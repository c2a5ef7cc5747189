"""Rows in the Compact coding: section 17 of the wire format."""

from bits import Malformed, length, signed, unzigzag
from prediction import Prediction, distance, extrapolate, from_codes, in_chart, limit, ratio, scaled, to_chart
from entries import row_work
from rows import read_splice


class RowReader:
    """Reads the rows of an entity, against up to three baselines."""

    def __init__(self, r, model, schema, state, tick=0, ticks=(None, None, None), bases=(None, None, None)):
        self.r, self.model, self.schema = r, model, schema
        self.carried = state == 2
        self.bases = [base.rows if base else {} for base in bases]
        self.t, self.t3 = (None if at is None else ratio(tick, ticks[0], at) for at in ticks[1:])
        self.change, self.largest = 0, 0

    def read(self, components):
        """The rows by component, and their work."""
        rows, work = {}, 0
        for c in components:
            component = self.schema.components[c]
            row1 = self.bases[0].get(c)
            if row1 is None:
                row = self.read_without(component)
            elif component.width == 0:
                row = row1
            else:
                row = self.read_with(c, component, row1)
            component.check(row)
            rows[c] = row
            work += row_work(component, row, row1, self.bases[1].get(c) if self.t is not None else None)
        return rows, work

    # ---- without a first baseline row

    def read_without(self, component):
        r, row = self.r, []
        for field in component.fields:
            if field.width == 0:
                code = 0
            elif field.kind == "quat":
                code = (r.bits(2), *(r.bits(field.bits) for _ in range(3)))
            elif field.kind == "reference":
                code = self.read_reference(field)
            elif field.kind == "bytes":
                code = self.read_bytes(field, r.bits(field.width))
            else:
                full = self.model.fulls[field.number % 16]
                if r.decision(full.decision, 0):
                    code = full.code
                else:
                    code = r.bits(field.width)
                    full.code = code & 0xFFFFFFFF
            r.note(field.path, field.show(code))
            row.append(code)
        return row

    def plain(self, field):
        """The decisions c[] of a field that is not a number."""
        return self.model.plains[field.among % 12]

    def read_reference(self, field):
        c = self.plain(field)
        slot = self.r.length_code(31, c, 1, 11)
        return (slot - 1, self.r.length_code(16, c, 12, 8)) if slot else None

    def read_bytes(self, field, n):
        if n == 0:
            return b""
        width = 8 if self.r.decision(self.plain(field), 2) else 7
        return bytes(self.r.bits(width) for _ in range(n))

    # ---- with a first baseline row

    def read_with(self, c, component, row1):
        r, decisions = self.r, self.model.rows[c % 8]
        row2, row3 = self.bases[1].get(c), self.bases[2].get(c)
        prediction = None
        if row2 is not None and self.t is not None:
            prediction = Prediction(component, row1, row2, self.t)
        moving = prediction is not None and prediction.moving
        s = self.change + 3 * self.carried
        row, meaning = None, "residuals"
        if moving:
            if r.decision(decisions.predicted, 4 * s + motion(component, row1, row2)):
                row, meaning = prediction.row, "the prediction"
            elif r.decision(decisions.stopped, s):
                row, meaning = row1, "the first baseline"
        elif r.decision(decisions.same, s):
            row, meaning = row1, "the first baseline"
        r.note(component.name, meaning)
        if row is not None:
            self.change = max(self.change, 1)
            return row
        self.change = 2
        if row2 is None or self.t3 is None:
            row3 = None
        return Residuals(self, component, row1, row2, row3, prediction if moving else None).read()


def apart(c1, c2):
    """|c1 - c2| as m has it: not round circles, but in 64 bits."""
    return abs(signed(c1 - c2, 64))


def motion(component, row1, row2):
    """m of the page: how far apart the first two baselines are."""
    x = 0
    for field, c1, c2 in zip(component.fields, row1, row2):
        if field.kind == "quat":
            if c1[0] != c2[0]:
                return 3
            for a, b in zip(c1[1:], c2[1:]):
                x |= abs(a - b)
        elif field.kind in ("linear", "wrap"):
            x |= abs(c1 - c2)
    return 0 if x <= 1 else 1 if x <= 3 else 2 if x <= 15 else 3


class Residuals:
    """Residuals of a row, field by field."""

    def __init__(self, rows, component, row1, row2, row3, prediction):
        self.rows, self.r, self.component = rows, rows.r, component
        self.row1, self.row2, self.row3 = row1, row2, row3
        self.prediction, self.moving = prediction, prediction is not None
        self.reference = prediction.row if self.moving else row1
        self.first, self.same = rows.largest == 0, not self.moving
        self.last = max(i for i, f in enumerate(component.fields) if f.width)

    def read(self):
        row = []
        for i, field in enumerate(self.component.fields):
            if field.width == 0:
                row.append(self.reference[i])
                continue
            code = getattr(self, "read_" + field.kind)(i, field)
            self.r.note(field.path, field.show(code))
            row.append(code)
        return row

    # ---- all but numbers

    def differs(self, i, c):
        """Whether a field differs: omitted if it must."""
        if i == self.last and self.same:
            return True
        if self.r.decision(c, 0):
            self.same = False
            return True
        return False

    def read_plain(self, i, field):
        c, reference, w = self.rows.plain(field), self.reference[i], field.width
        if not self.differs(i, c):
            return reference
        if w == 1:
            return reference ^ 1
        return (reference + unzigzag(self.r.length_code(w, c, 1, 11) + 1)) % (1 << w)

    def read_counter(self, i, field):
        c, reference, w = self.rows.plain(field), self.reference[i], field.width
        if not self.differs(i, c):
            return reference
        if w == 1:
            return reference ^ 1
        return (reference + self.r.length_code(w, c, 1, 11) + 1) % (1 << w)

    def read_flags(self, i, field):
        c, reference, w = self.rows.plain(field), self.reference[i], field.width
        if not self.differs(i, c):
            return reference
        if w == 1:
            return reference ^ 1
        if self.r.decision(c, 1):
            return reference ^ self.r.bits(w)
        number = self.r.bits(length(w - 1))
        if number >= w:
            raise Malformed("number of a flag")
        return reference ^ 1 << number

    def read_reference(self, i, field):
        if not self.differs(i, self.rows.plain(field)):
            return self.reference[i]
        return self.rows.read_reference(field)

    def read_bytes(self, i, field):
        c, reference = self.rows.plain(field), self.reference[i]
        if not self.differs(i, c):
            return reference
        begin, end, n = read_splice(self.r, len(reference), field.max, lambda: self.r.decision(c, 1))
        return reference[:begin] + self.rows.read_bytes(field, n) + reference[end:]

    # ---- numbers

    def read_linear(self, i, field):
        t, c1, c2 = self.reference[i], self.row1[i], self.row2[i] if self.moving else 0
        near = scaled(c1 - self.row3[i], self.rows.t3) if self.moving and self.row3 else None
        number = self.rows.model.numbers[field.among % 8]
        return self.number(field, number, field.width, t, c1, apart(c1, c2), near, i == self.last, lambda v: v, field.max)

    def read_wrap(self, i, field):
        t, c1, c2 = self.reference[i], self.row1[i], self.row2[i] if self.moving else 0
        way = lambda v: distance(v, 0, field.max)
        near = scaled(way(c1 - self.row3[i]), self.rows.t3) if self.moving and self.row3 else None
        number = self.rows.model.numbers[field.among % 8]
        return self.number(field, number, field.width, t, c1, apart(c1, c2), near, i == self.last, way, field.max)

    def read_quat(self, i, field):
        bits, number = field.bits, self.rows.model.numbers[field.among % 8]
        chart = self.reference[i][0]
        if not self.r.decision(self.rows.model.chart, 0):
            chart, self.same = self.r.bits(2), False
        self.r.note(field.path, "chart %d" % chart)
        c1 = in_chart(self.row1[i], chart, bits)
        t, moved, near = c1, [0] * 3, [None] * 3
        if self.moving:
            t = to_chart(self.prediction.rotations[i], chart, bits)
            if self.reference[i][0] == chart:
                t = self.reference[i][1:]
            q1, q2 = from_codes(self.row1[i], bits), from_codes(self.row2[i], bits)
            moved = [abs(a - b) for a, b in zip(to_chart(q1, chart, bits), to_chart(q2, chart, bits))]
            if self.row3:
                near = [0] * 3
                if self.row3[i] != self.row1[i]:
                    far = extrapolate(from_codes(self.row3[i], bits), q1, self.rows.t3, bits)
                    near = [a - b for a, b in zip(to_chart(far, chart, bits), c1)]
        code = [chart]
        for k in range(3):
            last = i == self.last and k == 2
            code.append(self.number(field, number, bits, t[k], c1[k], moved[k], near[k], last, lambda v: v, field.max))
        return tuple(code)

    def number(self, field, number, w, t, c1, moved, near, last, way, most):
        """A number: the aim, how far the code is from it, and what is learnt of that.

        way makes differences on a circle the shortest ones.
        """
        r, wide = self.r, w > 40
        m = length(moved) if self.moving else 0
        aim, ahead, more = t, 0, 0
        learns = self.moving and not wide
        if learns:
            ahead = way(t - c1)
            i = min(length(abs(ahead)), 11)
            aim = c1 + scaled(ahead, number.reach[i])
            if near is not None:
                more = near - ahead
            j = min(length(abs(more)), 11)
            aim += scaled(more, number.turn[j])
            aim = aim % (most + 1) if field.kind == "wrap" else limit(aim, most)
        if not self.moving:
            context = 0 if self.first else 1
        elif self.first:
            context = 2 + min(m // 3, 3)
        else:
            context = 6 + min((m + self.rows.largest) // 2, 9)

        n = 1 if last and self.same else 0
        while n < w and r.decision(number.length[context], min(n, 11)):
            n += 1
        v = 0
        if n == 1:
            v = -1 if r.bits(1) else 1
        elif n > 1:
            v = 2 + r.decision(number.top, min(n - 2, 11))
            rest = r.bits(n - 1)
            v = v << (n - 2) | rest >> 1
            if rest & 1:
                v = -v
        if v and learns:
            if ahead:
                learn(number.reach, i, (ahead < 0) == (v < 0), 204)
            if more:
                learn(number.turn, j, (more < 0) == (v < 0), 1489)
        self.rows.largest = max(self.rows.largest, length(abs(v)))
        self.first = False
        self.same = self.same and v == 0
        if field.kind == "quat":
            return aim + v
        if field.kind == "wrap" and most + 1 != 1 << w and (2 * v if v >= 0 else -2 * v - 1) > most:
            raise Malformed("distance on a circle")
        return (aim + v) % (most + 1 if field.kind == "wrap" else 1 << w)


def learn(entries, i, on, step):
    entries[i] = min(entries[i] + step, 131072) if on else max(entries[i] - step, -65536)
