package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// An explainLine is a line of what is printed of a packet.
type explainLine struct {
	name, bits, code, change, value string
}

func (l *explainLine) text(widths *[4]int) string {
	text := "  " + pad(l.name, widths[0]) + "  " + padLeft(l.bits, widths[1])
	if l.code != "" || l.change != "" {
		text += "  " + padLeft(l.code, widths[2]) + "  " + padLeft(l.change, widths[3])
	}
	if l.value != "" {
		text += "  " + l.value
	}
	return strings.TrimRight(text, " ") + "\n"
}

func textWidth(text string) int { return utf8.RuneCountInString(text) }

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-textWidth(text), 0))
}

func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(width-textWidth(text), 0)) + text
}

// bitsText returns bits of a part.
func bitsText(p *recording.Packet, bits float64) string {
	if p.Compact {
		return strconv.FormatFloat(bits, 'f', 1, 64)
	}
	return strconv.FormatFloat(bits, 'f', 0, 64)
}

// packetLines returns what is printed of a packet, nothing if it has nothing of what the flags choose.
func packetLines(p *recording.Packet, cfg config) (lines []explainLine) {
	var before []replication.Tick
	for parts := p.Parts; len(parts) > 0; {
		n := 1 // an entry, or a part of the packet
		for n < len(parts) && (parts[n].What == "mask" || parts[n].What == "field" || parts[n].What == "rows") {
			n++
		}
		if cfg.chosen(&parts[0]) {
			lines = append(lines, entryLines(p, parts[:n], before)...)
			if len(parts[0].Against) > 0 {
				before = parts[0].Against
			}
		}
		parts = parts[n:]
	}
	if len(lines) > 1 && !cfg.entityChosen {
		lines = append(lines, sumLine(p))
	}
	return lines
}

// sumLine sums up the parts of a packet.
func sumLine(p *recording.Packet) explainLine {
	var heads, masks, fields, rest float64
	for i := range p.Parts {
		switch part := &p.Parts[i]; {
		case part.What == "mask":
			masks += part.Bits
		case part.What == "field" || part.What == "rows" || part.What == "fragment":
			fields += part.Bits
		case part.Slot >= 0 && part.What != "end":
			heads += part.Bits
		default:
			rest += part.Bits
		}
	}
	text := fmt.Sprintf("packet %s, heads %s, masks %s, fields %s", bitsText(p, rest), bitsText(p, heads),
		bitsText(p, masks), bitsText(p, fields))
	return explainLine{name: "sum", bits: bitsText(p, rest+heads+masks+fields), value: text}
}

// entryLines returns the lines of an entry: its head, and what belongs to that. A line has the bits of those below it,
// too. before are the baselines of the entry before.
func entryLines(p *recording.Packet, parts []recording.PacketPart, before []replication.Tick) []explainLine {
	head := &parts[0]
	text := entryText(p, head, before)
	if len(parts) > 1 && head.Bits > 0 {
		text = joined("head "+bitsText(p, head.Bits), text)
	}
	lines := []explainLine{{name: entryName(head), bits: bitsText(p, sumOf(parts)), value: text}}
	parts = parts[1:]
	if head.What == "message" {
		for i := range parts {
			lines = append(lines, fieldLine(p, &parts[i], "  "))
		}
		return lines
	}
	var unchanged []string
	idle := 0.
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].What == "field" && parts[n].Component == parts[0].Component {
			n++
		}
		if m := &parts[0]; m.What == "mask" && m.Detail == "unchanged" {
			unchanged, idle = append(unchanged, m.Component), idle+m.Bits
		} else {
			lines = append(lines, rowLines(p, parts[:n])...)
		}
		parts = parts[n:]
	}
	if unchanged != nil {
		lines = append(lines, explainLine{
			name: "  unchanged", bits: bitsText(p, idle), value: strings.Join(unchanged, ", "),
		})
	}
	return lines
}

func sumOf(parts []recording.PacketPart) (bits float64) {
	for i := range parts {
		bits += parts[i].Bits
	}
	return bits
}

// joined joins texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
}

// entryName returns which entity an entry is of.
func entryName(head *recording.PacketPart) string {
	switch {
	case head.What == "message" || head.What == "fragment":
		return head.Component
	case head.Slot < 0 || head.What == "end":
		return head.What
	case head.Entity == replication.NetID{}:
		return head.What + " resources"
	case head.Entity.Generation == 0:
		return fmt.Sprintf("%s %d", head.What, head.Slot)
	}
	return head.What + " " + head.Entity.String()
}

// entryText returns the rest of the line of a head.
func entryText(p *recording.Packet, head *recording.PacketPart, before []replication.Tick) string {
	against, of := "", ""
	switch {
	case len(head.Against) > 0 && slices.Equal(head.Against, before):
		against = "same baselines"
	case len(head.Against) > 0:
		against = fmt.Sprintf("against tick %d, %d old", head.Against[0], p.Tick-head.Against[0])
		for i, t := range head.Against[1:] {
			against += []string{", and ", ", "}[min(i, 1)] + fmt.Sprint(t)
		}
	}
	switch message := head.What == "message" || head.What == "fragment"; {
	case message:
		return joined(head.What, head.Detail, fmt.Sprintf("of tick %d", head.Tick))
	case head.Slot >= 0 && head.Tick != p.Tick && head.What != "end":
		of = fmt.Sprintf("of tick %d", head.Tick)
	}
	return joined(against, head.Detail, of)
}

// rowLines returns the lines of a component: what comes before its fields, and these. A component with one field has
// one line.
func rowLines(p *recording.Packet, parts []recording.PacketPart) (lines []explainLine) {
	first, text := &parts[0], ""
	bits := bitsText(p, sumOf(parts))
	switch first.What {
	case "rows":
		return []explainLine{{name: "  rows", bits: bits, value: "coded in another way than by this library"}}
	case "mask":
		text = joined("mask "+bitsText(p, first.Bits), first.Detail)
		parts = parts[1:]
	}
	if len(parts) == 1 {
		l := fieldLine(p, &parts[0], "")
		l.name, l.bits = "  "+fullName(&parts[0]), bits
		if first.Detail != "" {
			l.value = joined(l.value, first.Detail)
		}
		return []explainLine{l}
	}
	lines = append(lines, explainLine{name: "  " + first.Component, bits: bits, value: text})
	for i := range parts {
		lines = append(lines, fieldLine(p, &parts[i], "    "))
	}
	return lines
}

// fullName returns the name of a field with that of its component.
func fullName(part *recording.PacketPart) string {
	if part.Field == "" {
		return part.Component
	}
	return part.Component + "." + part.Field
}

// fieldLine returns the line of a field, indented.
func fieldLine(p *recording.Packet, part *recording.PacketPart, indent string) explainLine {
	l := explainLine{
		name: indent + part.Field, bits: bitsText(p, part.Bits), code: part.Code, value: valueText(part.Value),
	}
	if part.Base == "" {
		return l
	}
	now, err := strconv.ParseUint(part.Code, 10, 64)
	was, err2 := strconv.ParseUint(part.Base, 10, 64)
	switch change := int64(now - was); {
	case part.Code == part.Base:
		l.change = "="
	case err != nil || err2 != nil || change == math.MinInt64:
		l.change = "was " + part.Base
	default:
		l.change = fmt.Sprintf("%+d", change)
	}
	return l
}

// valueText returns a value for people.
func valueText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return strconv.Quote(v)
	case replication.NetID:
		if v == (replication.NetID{}) {
			return "no entity"
		}
		return "entity " + v.String()
	}
	return fmt.Sprint(value)
}
