"""Predicted rows: section 8 of the wire format. Everything is in integers."""

from math import isqrt

from bits import after, div
from quantisers import quat_grid


def ratio(tick, a1, a2):
    """How far the packet's tick is beyond A1, in spans from A2 to A1, times 2^16; None if there is no prediction."""
    ahead, span = after(tick, a1), after(a1, a2)
    if ahead <= 0 or span <= 0 or ahead > 8 * span:
        return None
    return div(ahead << 16, span)


class Prediction:
    """A predicted row. For quaternions it keeps the rotation too, which is finer than its codes."""

    def __init__(self, component, row1, row2, t):
        self.row, self.rotations = [], {}
        self.row2 = row2
        for i, field in enumerate(component.fields):
            c1, c2 = row1[i], row2[i]
            if field.kind == "quat":
                rotation = from_codes(c1, field.bits)
                code = c1
                if c1 != c2:
                    rotation = extrapolate(from_codes(c2, field.bits), rotation, t, field.bits)
                    code = to_code(rotation, field.bits)
                self.rotations[i] = rotation
                self.row.append(code)
            elif field.width > 44:
                self.row.append(c1)
            elif field.kind == "linear":
                self.row.append(limit(c1 + scaled(c1 - c2, t), field.max))
            elif field.kind == "wrap":
                self.row.append((c1 + scaled(distance(c1, c2, field.max), t)) % (field.max + 1))
            else:
                self.row.append(c1)
        self.moving = self.row != row1


def scaled(d, t):
    return (d * t + (1 << 15)) >> 16


def limit(v, most):
    return min(max(v, 0), most)


def distance(to, start, most):
    """The signed distance of two codes on a circle: section 7, wrap."""
    d = (to - start) % (most + 1)
    return d - (most + 1) if 2 * d >= most + 1 else d


# ---- rotations: four integers x, y, z, w


def scale(bits):
    """N, s and the length of a rotation."""
    steps, top = quat_grid(bits)
    s = 94906265 // steps
    return top, s, steps * s


def from_codes(code, bits):
    """A rotation from the codes (index left out, three codes)."""
    top, s, size = scale(bits)
    kept = [(c - top) * s for c in code[1:]]
    rest = size**2 - sum(n * n for n in kept)
    kept.insert(code[0], isqrt(rest) if rest > 0 else 0)
    return kept


def to_chart(rotation, left_out, bits):
    """The three codes of a rotation in the chart that leaves out a component."""
    top, s, _ = scale(bits)
    if rotation[left_out] < 0:
        rotation = [-x for x in rotation]
    return [limit((x + s // 2) // s + top, (1 << bits) - 1) for i, x in enumerate(rotation) if i != left_out]


def fine_chart(rotation, left_out, bits):
    """to_chart in units of 1/256 codes."""
    top, s, _ = scale(bits)
    if rotation[left_out] < 0:
        rotation = [-x for x in rotation]
    most = ((1 << bits) - 1) * s
    return [limit(x + top * s, most) * 256 // s for i, x in enumerate(rotation) if i != left_out]


def to_code(rotation, bits):
    """The codes of a rotation in the chart that leaves out its component of largest magnitude."""
    index = max(range(4), key=lambda i: abs(rotation[i]))  # the first of equal ones
    return (index, *to_chart(rotation, index, bits))


def in_chart(code, left_out, bits):
    """The three codes in a chart of a rotation given by codes; unchanged if it has this chart."""
    if code[0] == left_out:
        return list(code[1:])
    return to_chart(from_codes(code, bits), left_out, bits)


def extrapolate(q2, q1, t, bits):
    """The great circle from q2 over q1."""
    size = scale(bits)[2]
    dot = sum(a * b for a, b in zip(q1, q2))
    sign = 1
    if dot < 0:
        dot, sign = -dot, -1
    full = size**2
    x = min(div(dot - full, full >> 30), 0)
    f1, f2 = sine(t + (1 << 16), x), sine(t, x) * sign
    return [(f1 * a - f2 * b) >> 20 for a, b in zip(q1, q2)]


def sine(t, x):
    acc = 1 << 24
    t2 = (t * t) >> 16
    for i in range(6, 0, -1):
        f = div(((t2 - (i * i << 16)) * x) >> 22, i * (2 * i + 1))
        acc = (1 << 24) + ((f * acc) >> 24)
    return (t * acc) >> 20
