package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// overviewHeading precedes the lines of packets.
var overviewHeading = overviewCells("time", "tick", "kind", "bytes", "entries", "dearest fields, in bits")

func overviewCells(at, tick, kind, bytes, entries, text string) string {
	line := pad(at, 8) + padLeft(tick, 8) + "  " + pad(kind, 8) + padLeft(bytes, 7) + padLeft(entries, 9) + "  " + text
	return strings.TrimRight(line, " ") + "\n"
}

// overviewFields is how many fields of a packet are named.
const overviewFields = 3

// overviewLine returns the line of a packet. begins reports whether the recording starts anew with it.
func overviewLine(p *recording.Packet, begins bool) string {
	tick, texts := "", []string(nil)
	if p.Kind == "state" || p.Kind == "messages" {
		tick = fmt.Sprint(p.Tick)
	}
	entries, fields := 0, map[string]float64{}
	for i := range p.Parts {
		switch part := &p.Parts[i]; part.What {
		case "field":
			fields[elements.ReplaceAllString(fullName(part), "")] += part.Bits
		case "message", "fragment":
			entries++
		case "mask", "rows", "end":
		default:
			if part.Slot >= 0 {
				entries++
			}
		}
	}
	names := sortedKeys(fields)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(fields[b], fields[a]) })
	for _, name := range names[:min(len(names), overviewFields)] {
		if fields[name] >= 0.05 { // else 0.0 is printed
			texts = append(texts, name+" "+bitsText(p, fields[name]))
		}
	}
	if begins {
		texts = append(texts, "the recording starts anew")
	}
	if p.Err != nil {
		texts = append(texts, "NOT TAKEN: "+p.Err.Error())
	}
	return overviewCells(clockText(p.At), tick, p.Kind, fmt.Sprint(p.Bytes), fmt.Sprint(entries),
		strings.Join(texts, ", "))
}
