"""Rows in the Packed coding: section 7 of the wire format."""

from bits import Malformed, length, unzigzag
from entries import row_work
from prediction import Prediction, distance, from_codes, in_chart, to_chart


def read_rows(r, schema, components, rows1=None, rows2=None, t=None):
    """The rows of an entity, by component, and their work.

    rows1 and rows2 are the rows of the two baselines, or None, and t is the ratio of section 8, None if there is no
    prediction.
    """
    plans = []  # for each row: component, baseline row, prediction
    for c in components:
        row1 = (rows1 or {}).get(c)
        row2 = (rows2 or {}).get(c) if t is not None else None
        prediction = None
        if row1 is not None and row2 is not None:
            prediction = Prediction(schema.components[c], row1, row2, t)
        plans.append((c, schema.components[c], row1, prediction))

    begins = [c for c, component, row1, _ in plans if row1 is not None and component.width > 0]
    forms = read_forms(r, begins)

    rows, work = {}, 0
    for c, component, row1, prediction in plans:
        if row1 is None:
            rows[c] = read_without(r, component)
        elif component.width == 0:
            rows[c] = row1
        else:
            rows[c] = read_with(r, component, row1, prediction, forms[c])
        component.check(rows[c])
        work += row_work(component, rows[c], row1, prediction.row2 if prediction else None)
    return rows, work


WRITTEN, USUAL, ODD = range(3)  # forms of a row's symbol; ODD is not the usual one, and lacks its first bit


def read_forms(r, begins):
    """How each row of the components in begins, which have symbols, begins."""
    n = len(begins)
    if n < 2:
        return dict.fromkeys(begins, WRITTEN)
    if r.bit() == 0:
        r.note("symbols", "usual, and omitted")
        return dict.fromkeys(begins, USUAL)
    if n < 4 or r.bit() == 1:
        r.note("symbols", "before the rows")
        return dict.fromkeys(begins, WRITTEN)
    i = r.truncated(n)
    r.note("symbols", "usual, and omitted, but for row %d" % i)
    forms = dict.fromkeys(begins, USUAL)
    forms[begins[i]] = ODD
    return forms


def read_without(r, component):
    """A row without a baseline: all codes at fixed width, except for references and texts."""
    row = []
    for field in component.fields:
        if field.kind == "quat":
            code = (r.bits(2), *(r.bits(field.bits) for _ in range(3)))
        elif field.kind == "reference":
            code = read_reference(r) if r.bit() else None
        elif field.kind == "bytes":
            n = r.bits(field.width)
            if n > field.max:
                raise Malformed("length of a text")
            code = read_bytes(r, n)
        else:
            code = r.bits(field.width)
        r.note(field.path, field.show(code))
        row.append(code)
    return row


def read_reference(r):
    """A reference, after the bit for one that is not none."""
    q = r.unary(5)
    if q == 5:
        return (r.bits(30), r.bits(16))
    slot = 128 * (8**q - 1) // 7 + r.bits(7 + 3 * q)
    return (slot, r.residual(3, 16))


def read_bytes(r, n):
    if n == 0:
        return b""
    width = 8 if r.bit() else 7
    return bytes(r.bits(width) for _ in range(n))


def read_splice(r, m, largest, resized):
    """Where what changed begins and ends in a text of m bytes, and how many bytes stand there now.

    The text may grow to the largest number of bytes. resized reads whether there are not as many as before.
    """
    begin = r.bits(length(m))
    if begin > m:
        raise Malformed("beginning of a text")
    end = r.bits(length(m - begin))
    if end > m - begin:
        raise Malformed("end of a text")
    old, room = m - begin - end, largest - begin - end
    if old == 0:
        if room == 0:
            raise Malformed("no room in a text")
        n = r.bits(length(room - 1)) + 1
    else:
        n = r.bits(length(room)) if resized() else old
    if n > room:
        raise Malformed("length of a text")
    return begin, m - end, n


def read_with(r, component, row1, prediction, form):
    """A row with a baseline."""
    moving = prediction is not None and prediction.moving
    if form == ODD and any(f.kind == "quat" for f in component.fields):
        form = WRITTEN  # a chart may be what is unusual
    if not moving:
        # It was at rest, and is sent since it is not any more; or it is expected to stay.
        differs = prediction is None and component.moves
        if form == WRITTEN:
            differs = r.bit() == 1
        elif form == ODD:
            differs = not differs
        if form != USUAL:
            r.note(component.name, SYMBOLS[3 if differs else 2])
        if not differs:
            return row1
    elif form != USUAL:
        symbol = 1 + r.unary_ones(2) if form == ODD else r.unary_ones(3)
        r.note(component.name, SYMBOLS[symbol])
        if symbol == 1:
            return prediction.row
        if symbol == 2:
            return row1
        moving = symbol == 0
    return Residuals(r, component, row1, prediction, moving).read(form == USUAL)


SYMBOLS = [
    "residuals against the prediction",
    "the prediction",
    "as in the first baseline",
    "residuals against the first baseline",
]


def turns_together(fields, i, row1, row2):
    """By how much the ways of wrap field i and the field before it differ if they turn together, otherwise None."""
    field, before = fields[i], fields[i - 1]
    if i == 0 or field.width > 44 or before.kind != "wrap" or before.max != field.max:
        return None
    way, other = (distance(row1[k], row2[k], field.max) for k in (i, i - 1))
    apart = abs(way - other)
    return apart if abs(way) >= 16 and 32 * apart <= abs(way) else None


class Residuals:
    """Residuals of a row, field after field, with the state that is kept while they are read."""

    def __init__(self, r, component, row1, prediction, moving):
        self.r, self.component = r, component
        self.row1, self.row2 = row1, None
        self.reference = row1
        self.moving, self.prediction = moving, prediction
        if moving:
            self.reference = prediction.row
            self.row2 = prediction.row2
        self.first, self.same, self.largest = True, True, 0
        self.last = max(i for i, f in enumerate(component.fields) if f.width)

    def read(self, usual):
        charts = self.read_charts(usual)
        self.row = row = []
        for i, field in enumerate(self.component.fields):
            if field.width == 0:
                row.append(self.reference[i])
                continue
            code = getattr(self, "read_" + field.kind)(i, field, charts.get(i))
            self.r.note(field.path, field.show(code))
            row.append(code)
        return row

    def read_charts(self, usual):
        """For every quat field the index of the component left out."""
        charts = {}
        for i, field in enumerate(self.component.fields):
            if field.kind != "quat":
                continue
            charts[i] = own = self.reference[i][0]
            if usual:
                continue
            if self.r.bit():
                charts[i] = self.r.bits(2)
                if charts[i] == own:
                    raise Malformed("chart")
                self.same = False
            self.r.note(field.path, "chart %d" % charts[i])
        return charts

    # ---- numbers, which have residuals in the narrow sense

    def order(self, m, first):
        if not self.moving:
            return 3 if first else max(self.largest - 1, 0)
        if first:
            return min(m, 2) if m <= 3 else m >> 1
        if m == 0:
            return self.largest >> 2
        if self.largest == 0:
            return m >> 1
        if self.largest <= 2:
            return min(((m >> 1) + self.largest) >> 1, 1)
        return ((m >> 1) + 2 * self.largest) // 3

    def residual(self, m, field, width, last, together=False):
        """A residual. If nothing differed yet, the last one is not zero, and is written less one."""
        k = self.order(m, self.first or together)
        if k < len(field.orders):
            k = field.orders[k]
        elif not field.orders and field.kind in ("linear", "wrap"):
            k = max(k + self.r.shift, 0)
        v = self.r.residual(k, width)
        one = last and self.same
        self.first = False
        self.largest = max(self.largest, length(v))
        v += one
        self.same = self.same and v == 0
        return v

    def read_linear(self, i, field, _):
        m = length(abs(self.row1[i] - self.row2[i])) if self.moving else 0
        v = self.residual(m, field, field.width, i == self.last)
        return (self.reference[i] + unzigzag(v)) % (1 << field.width)

    def read_wrap(self, i, field, _):
        reference, n = self.reference[i], field.max + 1
        m = length(abs(self.row1[i] - self.row2[i])) if self.moving else 0
        apart = turns_together(self.component.fields, i, self.row1, self.row2) if self.moving else None
        if apart is not None:
            m = length(apart)
            reference += self.row[i - 1] - self.reference[i - 1]
        v = self.residual(m, field, field.width, i == self.last, apart is not None)
        if n != 1 << field.width and v > field.max:
            raise Malformed("distance on a circle")
        return (reference + unzigzag(v)) % n

    def read_quat(self, i, field, chart):
        bits = field.bits
        if self.moving:
            t = to_chart(self.prediction.rotations[i], chart, bits)
            c1 = to_chart(from_codes(self.row1[i], bits), chart, bits)
            c2 = to_chart(from_codes(self.row2[i], bits), chart, bits)
        else:
            t = c1 = c2 = in_chart(self.reference[i], chart, bits)
        m = [length(abs(c1[k] - c2[k])) for k in range(3)]
        self.first = self.first or max(m) == 0
        self.largest = min(self.largest, max(m))
        code = [chart]
        for k in range(3):
            v = self.residual(m[k], field, bits + 1, i == self.last and k == 2)
            code.append(t[k] + unzigzag(v))
        return tuple(code)

    # ---- all others, which mostly stay

    def differs(self, i):
        """The difference bit of a field, omitted if it must differ."""
        if i == self.last and self.same:
            return True
        if self.r.bit():
            self.same = False
            return True
        return False

    def read_plain(self, i, field, _):
        reference, w = self.reference[i], field.width
        if not self.differs(i):
            return reference
        if w == 1:
            return reference ^ 1
        order = 0 if w <= 2 else 3 if w <= 16 else 6 if w <= 32 else 8
        return (reference + unzigzag(self.r.residual(order, w) + 1)) % (1 << w)

    def read_counter(self, i, field, _):
        reference, w = self.reference[i], field.width
        if not self.differs(i):
            return reference
        if w == 1:
            return reference ^ 1
        return (reference + self.r.residual(0, w) + 1) % (1 << w)

    def read_flags(self, i, field, _):
        reference, w = self.reference[i], field.width
        if not self.differs(i):
            return reference
        if w == 1:
            return reference ^ 1
        if self.r.bit():
            return reference ^ self.r.bits(w)
        number = self.r.bits(length(w - 1))
        if number >= w:
            raise Malformed("number of a flag")
        return reference ^ 1 << number

    def read_reference(self, i, field, _):
        reference = self.reference[i]
        if not self.differs(i):
            return reference
        code = read_reference(self.r) if reference is None or self.r.bit() else None
        if code == reference:
            raise Malformed("a reference that does not differ")
        return code

    def read_bytes(self, i, field, _):
        reference = self.reference[i]
        if not self.differs(i):
            return reference
        begin, end, n = read_splice(self.r, len(reference), field.max, self.r.bit)
        return reference[:begin] + read_bytes(self.r, n) + reference[end:]
