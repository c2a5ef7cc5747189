"""Rows in the Compact coding: section 17 of the wire format."""

from bits import Malformed, length, signed, unzigzag
from prediction import Prediction, distance, extrapolate, fine_chart, from_codes, in_chart, limit, ratio, scaled
from entries import row_work
from rows import read_splice, turns_together


class RowReader:
    """Reads the rows of an entity, against up to four baselines."""

    def __init__(self, r, model, schema, state, tick=0, ticks=(None,) * 4, bases=(None,) * 4):
        self.r, self.model, self.schema = r, model, schema
        self.carried = state == 2
        self.bases = [base.rows if base else {} for base in bases]
        self.t, self.t3, self.t4 = (None if at is None else ratio(tick, ticks[0], at) for at in ticks[1:])
        self.change, self.largest, self.trend = 0, 0, 0

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
                full = self.model.fulls[field.number % 64]
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
        return self.model.plains[field.among % 48]

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
        r, decisions = self.r, self.model.rows[c % 32]
        row2, row3, row4 = (base.get(c) for base in self.bases[1:])
        if self.t is None:
            row2 = None
        prediction = None
        if row2 is not None:
            prediction = Prediction(component, row1, row2, self.t)
        moving = prediction is not None and prediction.moving
        s = self.change + 3 * self.carried
        row, meaning = None, "residuals"
        if moving:
            if r.decision(decisions.predicted, 4 * s + motion(component, row1, row2)):
                row, meaning = prediction.row, "the prediction"
            elif r.decision(decisions.stopped, s):
                row, meaning = row1, "the first baseline"
        elif r.decision(decisions.same, s + 6 * (row2 is not None and row2 != row1)):
            row, meaning = row1, "the first baseline"
        r.note(component.name, meaning)
        if row is not None:
            self.change = max(self.change, 1)
            return row
        self.change = 2
        if row2 is None or self.t3 is None:
            row3 = None
        if row3 is None or self.t4 is None:
            row4 = None
        return Residuals(self, component, (row1, row2, row3, row4), prediction if moving else None, decisions).read()


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

    def __init__(self, rows, component, before, prediction, decisions):
        self.rows, self.r, self.component = rows, rows.r, component
        self.row1, *self.others = before
        self.decisions = decisions
        self.prediction, self.moving = prediction, prediction is not None
        self.reference = prediction.row if self.moving else self.row1
        self.first, self.same = rows.largest == 0, not self.moving
        self.last = max(i for i, f in enumerate(component.fields) if f.width)

    def read(self):
        self.row = row = []
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
        steady, agree = self.steadily(i, w)
        if steady != reference and self.r.decision(c, 20 + agree):
            self.same = False
            return steady
        if not self.differs(i, c):
            return reference
        if w == 1:
            return reference ^ 1
        return (reference + unzigzag(self.r.length_code(w, c, 1, 11) + 1)) % (1 << w)

    def steadily(self, i, w):
        """The code if a plain field goes on as between the baselines, and whether two of them agree."""
        c1 = self.row1[i]
        if self.others[0] is None or not 2 <= w <= 32:
            return c1, 0
        went = [
            (c1 + scaled(signed(c1 - row[i], w), t)) % (1 << w)
            for row, t in zip(self.others, (self.rows.t, self.rows.t3))
            if row is not None
        ]
        if went[-1] == went[0]:
            return went[0], len(went) - 1
        return went[1] if went[1] != c1 else went[0], 0

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
        return self.read_number(i, field, lambda v: v)

    def read_wrap(self, i, field):
        fields = self.component.fields
        if self.moving and turns_together(fields, i, self.row1, self.others[0]) is not None:
            start = self.reference[i] + self.row[i - 1] - self.reference[i - 1]
            return self.number(field, field.width, start, [], i == self.last, together=True)
        return self.read_number(i, field, lambda v: distance(v, 0, field.max))

    def read_number(self, i, field, way):
        """A linear or wrap field; way makes differences on a circle the shortest ones."""
        aimed = self.moving and field.width <= 32
        ahead = []
        if aimed:
            ticks = (self.rows.t, self.rows.t3, self.rows.t4)
            ahead = [fine(way(self.row1[i] - row[i]), t) for row, t in zip(self.others, ticks) if row is not None]
        start = self.row1[i] if aimed else self.reference[i]
        return self.number(field, field.width, start, ahead, i == self.last)

    def read_quat(self, i, field):
        bits = field.bits
        chart = self.reference[i][0]
        if not self.r.decision(self.decisions.chart, 0):
            chart, self.same = self.r.bits(2), False
        self.r.note(field.path, "chart %d" % chart)
        c1 = in_chart(self.row1[i], chart, bits)
        ahead = []
        if self.moving:
            q1 = from_codes(self.row1[i], bits)
            for row, t in zip(self.others[:2], (self.rows.t, self.rows.t3)):
                if row is None:
                    continue
                to = [0] * 3
                if row[i] != self.row1[i]:
                    rotation = extrapolate(from_codes(row[i], bits), q1, t, bits)
                    to = [a - 256 * c for a, c in zip(fine_chart(rotation, chart, bits), c1)]
                ahead.append(to)
        code = [chart]
        for k in range(3):
            last = i == self.last and k == 2
            code.append(self.number(field, bits, c1[k], [to[k] for to in ahead], last))
        return tuple(code)

    def number(self, field, w, start, ahead, last, together=False):
        """A number: the aim, how far the code is from it, and what is learnt of that."""
        r, number, most = self.r, self.rows.model.numbers[field.among % 32], field.max
        if field.kind == "quat":
            most = (1 << field.bits) - 1
        aim = start * 256
        parts = [ahead[0]] + [to - ahead[0] for to in ahead[1:]] if ahead else []
        shares = [number.share[i] for i in range(len(parts))]
        indices = [min(length(abs(part) >> 6), 13) for part in parts]
        for part, share, i in zip(parts, shares, indices):
            aim += scaled(part, share[i])
        at = (aim + 128) >> 8
        above = aim - 256 * at
        if field.kind == "wrap":
            at %= most + 1
        else:
            at = limit(at, most)
        context = 1 if together else self.context(parts)
        fine = None
        if parts and context < 5:
            fine = number.fine[context - 2]
        elif parts and 10 <= context < 13:
            fine = number.fine[context - 7]
        fraction = abs(above) * 3 // 129

        def longer(n):
            if fine and n < 2:
                return r.decision(fine, 3 * n + fraction)
            return r.decision(number.length[context], min(n, 11))

        n = 1 if last and self.same else 0
        while n < w and longer(n):
            n += 1
        v = 0
        if n:
            v = 1 if n == 1 else 2 + r.decision(number.top, min(n - 2, 11))
            rest = max(n - 2, 0)
            if parts and n <= 2:
                negative = r.decision(number.side, 3 * (n - 1) + fraction) == (above < 0)
            elif parts and parts[0]:
                negative = r.decision(number.trend, 8 * self.rows.trend + min(n - 3, 7)) == (parts[0] < 0)
                v = v << rest | r.bits(rest)
            else:
                low = r.bits(rest + 1)
                v, negative = v << rest | low >> 1, low & 1
            if negative:
                v = -v
        left = 256 * v - above
        for part, share, i, most_step in zip(parts, shares, indices, (204, 1489, 1489)):
            if part and left:
                step = min((abs(left) << 16) >> (length(abs(part)) + 3), most_step)
                step = step if (part < 0) == (left < 0) else -step
                share[i] = limit(share[i] + step + 262144, 524288) - 262144
        self.rows.largest = max(self.rows.largest, length(abs(v)))
        if v and parts and parts[0]:
            self.rows.trend = 1 if (v < 0) == (parts[0] < 0) else 2
        self.first = False
        self.same = self.same and v == 0
        if field.kind == "quat":
            return at + v
        if field.kind == "wrap" and most + 1 != 1 << w and (2 * v if v >= 0 else -2 * v - 1) > most:
            raise Malformed("distance on a circle")
        return (at + v) % (most + 1 if field.kind == "wrap" else 1 << w)

    def context(self, parts):
        if not self.moving:
            return 0 if self.first else 1
        far = length(abs(parts[0]) >> 8) if parts else 0
        spread = length(abs(parts[1]) >> 6) if len(parts) > 1 else far
        if self.first:
            return 2 + min(spread, 7)
        return 10 + min((far + spread + self.rows.largest) // 3, 13)


def fine(d, t):
    """A distance times a ratio, in units of 1/256."""
    return (d * t + 128) >> 8
