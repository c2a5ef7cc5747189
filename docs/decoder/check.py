#!/usr/bin/env python3
"""Decodes the golden packets of docs/vectors and compares everything with the contents of the files.

    python3 docs/decoder/check.py             checks; exit status 1 if anything differs
    python3 docs/decoder/check.py annotate    writes the bits of some packets into the files
"""

import os
import random
import sys
import time
from itertools import zip_longest
from types import SimpleNamespace

sys.dont_write_bytecode = True

import compact
import handshake
import messages
import packed
from bits import Malformed
from client import Client
from golden import Golden, annotation
from schema import Schema

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")
FILES = {  # and the kinds of which a file has an annotated example
    "packed.txt": packed.KINDS,
    "compact.txt": compact.KINDS,
    "apart.txt": ["update", "named update", "full state", "apart"],
    "ranges.txt": ["update", "named update", "full state", "apart", "range"],
    "intervals.txt": ["update", "named update", "full state"],
}


class Difference(Exception):
    """What was decoded differs from the file."""


def equal(what, got, want):
    if got != want:
        raise Difference("%s: decoded %r, expected %r" % (what, got, want))


def main():
    failed = False
    for name, examples in FILES.items():
        golden = Golden(os.path.join(VECTORS, name))
        try:
            if sys.argv[1:] == ["annotate"]:
                golden.annotate(chosen(golden))
                continue
            print(name + ":", check(golden, examples))
        except (Difference, Malformed) as problem:
            failed = True
            print("%s: %s: %s" % (name, type(problem).__name__, problem), file=sys.stderr)
    for name, compare_all in ("join.txt", check_joins), ("reports.txt", check_reports):
        try:
            print(name + ":", compare_all(os.path.join(VECTORS, name)))
        except (Difference, Malformed) as problem:
            failed = True
            print("%s: %s: %s" % (name, type(problem).__name__, problem), file=sys.stderr)
    return 1 if failed else 0


def check_joins(path):
    """Compares hellos, and the disconnects that refuse them, with the contents of the file."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    got, packets = {}, 0
    for line in lines:
        name, _, value = line.strip().partition(" ")
        if not line.startswith("  "):
            equal(path + ": not in the file", sorted(got), [])
            packet = bytes.fromhex(value)
            got = {"hello": handshake.hello, "disconnect": handshake.refusal}[name](packet)
            packets += 1
            for i in range(len(packet)):  # damaged, it must be refused
                damaged = packet[:i] + bytes([packet[i] ^ 1 << i % 8]) + packet[i + 1 :]
                for take in handshake.hello, handshake.refusal:
                    try:
                        take(damaged)
                    except Malformed:
                        continue
                    raise Difference("a damaged packet was accepted")
        else:
            known = got.pop(name)
            equal(name, known, int(value, 0) if isinstance(known, int) else value)
    equal(path + ": not in the file", sorted(got), [])
    return "%d packets" % packets


def check_reports(path):
    """Compares the reports about inputs that a server sent with the contents of the file."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    client = Client(SimpleNamespace(fingerprint=int(lines[0].split()[1], 0), resources=0))
    client.welcome(bytes.fromhex(lines[2].split()[1]), int(lines[1].split()[1]))
    reports, got, packets, missed = messages.Reports(client), {}, 0, set()
    for line in lines[3:]:
        name, *values = line.split()
        if name == "report":
            equal(path + ": not in the file", sorted(got), [])
            packet = bytes.fromhex(values[0])
            for i in range(8 * len(packet)):  # damaged, it must be refused; without its checksum, decoded or refused
                damaged = bytearray(packet)
                damaged[i // 8] ^= 1 << i % 8
                for checksum in (True, False):
                    try:
                        reports.decode(bytes(damaged), checksum)
                    except Malformed:
                        continue
                    if checksum:
                        raise Difference("a damaged packet was accepted: " + damaged.hex())
            got = reports.receive(packet)
            packets += 1
            missed.update(got.get("missed", []))
        else:
            known = got.pop(name)
            equal(name, known if name == "missed" else [known], [int(v) for v in values])
    equal(path + ": not in the file", sorted(got), [])
    return "%d packets, %d ticks without their input" % (packets, len(missed))


def check(golden, examples):
    client = connect(golden)
    expected, annotated, tried = {}, set(), 0
    rand = random.Random(1)
    for packet in golden.packets:
        where = "packet %d" % packet.sequence
        if packet.fate == "lost":
            continue
        if packet.fate == "refused":
            try:
                client.receive(packet.data)
            except Malformed:
                continue
            raise Difference(where + ": accepted, though it arrived before")
        tried += attack(client, packet.data, rand)
        trace = []
        try:
            header, entries = client.decode(packet.data, trace)
        except Malformed as problem:
            raise Difference("%s: refused: %s; read so far: %s" % (where, problem, trace[-5:]))
        equal(where + ": sequence", header.sequence, packet.sequence)
        equal(where + ": tick", header.tick, packet.tick)
        if packet.bits:
            for got, want in zip_longest(annotation(trace), packet.bits):
                equal(where + ": bits", got, want)
            annotated |= kinds(entries)
        client.take(header, entries)
        for slot, generation, tick, lines in packet.slots:
            expected.pop(slot, None)
            if lines is not None:
                expected[slot] = (generation, tick, lines)
        compare(where, client, expected)
    equal("complete", client.complete, True)
    equal("annotated kinds", sorted(annotated), sorted(examples))
    return "%d packets, %d damaged ones" % (len(golden.packets), tried)


def connect(golden):
    schema = Schema(golden.schema_text)
    equal("fingerprint", schema.fingerprint, golden.fingerprint)
    client = Client(schema)
    client.welcome(golden.welcome, golden.nonce)
    for name, value in golden.session.items():
        equal(name, getattr(client, name), value)
    return client


def compare(where, client, expected):
    """Compares all that the client shows: slots, generations, ticks, components, codes and values."""
    shown = client.shown()
    equal(where + ": slots", sorted(shown), sorted(expected))
    for slot, (generation, tick, lines) in expected.items():
        state = shown[slot]
        if slot or not client.schema.resources:
            equal("%s: slot %d: generation" % (where, slot), state.generation, generation)
            equal("%s: slot %d: tick" % (where, slot), state.tick, tick)
        got = sorted(describe(client.schema.components[c], row) for c, row in state.rows.items())
        equal("%s: slot %d" % (where, slot), [codes for codes, _ in got], [line.split(" =")[0] for line in lines])
        for (codes, values), line in zip(got, lines):
            equal("%s: slot %d: values of %s" % (where, slot, codes), values, parse(line.partition(" =")[2]))


def describe(component, row):
    """The codes of a component as text, and its values."""
    codes = " ".join([component.name] + [f.show(code) for f, code in zip(component.fields, row)])
    values = []
    for v in component.values(row):
        values += v if isinstance(v, list) else [v]
    return codes, values


def parse(words):
    """Values as the file has them: numbers, true and false, texts in hex, and * for references."""
    values = []
    for word in words.split():
        if word.startswith('"'):
            values.append(bytes.fromhex(word.strip('"')))
        else:
            values.append({"true": True, "false": False, "*": None}.get(word, word))
    return [v if not isinstance(v, str) else float(v) if any(c in v for c in ".eE") else int(v) for v in values]


def attack(client, packet, rand):
    """Damages a packet in many ways. It must be refused or decoded, quickly and without harm."""
    tried = 0
    for n in range(30):
        damaged = bytearray(packet)
        if n % 3 == 0:
            del damaged[rand.randrange(len(damaged)) :]
        for _ in range(n % 3 + (n % 6 == 3)):
            if damaged:
                at = rand.randrange(8 * len(damaged))
                damaged[at // 8] ^= 1 << at % 8
        if damaged == packet:
            continue
        begin = time.monotonic()
        for checksum in (True, False):
            try:
                client.decode(bytes(damaged), checksum=checksum)
            except Malformed:
                continue
            if checksum:
                raise Difference("a damaged packet was accepted: " + damaged.hex())
        if time.monotonic() - begin > 5:
            raise Difference("a damaged packet took too long: " + damaged.hex())
        tried += 1
    return tried


def kinds(entries):
    """What a packet is an example of."""
    return {e.kind for e in entries} | {e.how for e in entries if e.how}


def chosen(golden):
    """Annotations of packets that together have an entry of each kind: the shortest that has it."""
    client, best = connect(golden), {}
    for i, packet in enumerate(golden.packets):
        if packet.fate != "taken":
            continue
        trace = []
        header, entries = client.decode(packet.data, trace)
        client.take(header, entries)
        for kind in kinds(entries):
            if kind not in best or len(packet.data) < len(golden.packets[best[kind][0]].data):
                best[kind] = (i, annotation(trace))
    return dict(best.values())


if __name__ == "__main__":
    sys.exit(main())
