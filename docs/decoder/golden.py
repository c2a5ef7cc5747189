"""Golden files, as in docs/vectors. The format is described in README.md."""


class Packet:
    """A packet with its contents according to the file."""

    def __init__(self, words, data):
        self.sequence, self.tick, self.fate = int(words[2]), int(words[4]), words[5]
        self.data = data
        self.slots = []  # changes: (slot, generation or None, tick or None, lines), lines None for empty
        self.bits = []  # annotation
        self.line = 0  # after which the annotation follows


class Golden:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.lines = f.read().split("\n")
        self.path, self.packets, self.session = path, [], {}
        self.schema_text = ""
        at = 0
        while at < len(self.lines):
            words = self.lines[at].split()
            block = at + 1
            while block < len(self.lines) and self.lines[block].startswith("  "):
                block += 1
            self.block(words, at, self.lines[at + 1 : block])
            at = block

    def block(self, words, at, lines):
        if not words or words[0].startswith("#"):
            return
        if words[0] == "schema":
            self.schema_text = "".join(line[2:] + "\n" for line in lines)
        elif words[0] == "packet":
            packet = Packet(words, bytes.fromhex(lines[0].strip()))
            packet.line = at + 2
            self.packets.append(packet)
            for line in lines[1:]:
                self.packet_line(packet, line)
        elif words[0] == "welcome":
            self.welcome = bytes.fromhex(words[1])
            for line in lines:
                name, number = line.split()
                self.session[name] = int(number, 0)
        elif words[0] == "coding":
            self.coding = words[1]
        else:  # fingerprint, nonce
            setattr(self, words[0], int(words[1], 0))

    def packet_line(self, packet, line):
        words = line.split()
        if words[0] == "|":
            packet.bits.append(line)
        elif words[0] == "slot":
            known = dict(zip(words[2::2], words[3::2]))
            number = lambda name: int(known[name]) if name in known else None
            lines = None if words[-1] == "empty" else []
            packet.slots.append((int(words[1]), number("generation"), number("tick"), lines))
        else:
            packet.slots[-1][3].append(line.strip())

    def annotate(self, notes):
        """Writes the file again with annotations of some packets, given by their position in the file."""
        lines = []
        starts = {packet.line: notes.get(i, []) for i, packet in enumerate(self.packets)}
        for at, line in enumerate(self.lines):
            if at in starts:
                lines += starts[at]
            if not line.startswith("  | "):
                lines.append(line)
        with open(self.path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))


def annotation(trace):
    """The lines that describe what was read: name, bits, meaning."""
    lines = []
    for name, bits, meaning in trace:
        if len(bits) > 150:
            bits = bits[:147] + "..."
        lines.append(("  | %-26s %-34s %s" % (name, bits, meaning)).rstrip())
    return lines
