package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// A packetSum sums up packets: where the bits went.
type packetSum struct {
	packets, bytes int
	bits           map[string]float64 // by what they are for
	entities       map[string]*entitySum
	types          map[string]string // of fields, as the schema's text has them
	total          float64
}

// An entitySum is what an entity took.
type entitySum struct {
	name    string
	bits    float64
	entries int
}

func newPacketSum(schema string) packetSum {
	s := packetSum{bits: map[string]float64{}, entities: map[string]*entitySum{}, types: map[string]string{}}
	for _, line := range strings.Split(schema, "\n") {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.types[name] = rest
	}
	return s
}

// elements matches the indices of arrays, whose elements are summed up together.
var elements = regexp.MustCompile(`(\[\d+\])+$`)

// add adds what the flags choose of a packet. restart reports whether only the recording has it, where it starts anew.
func (s *packetSum) add(p *recording.Packet, cfg config, restart bool) {
	s.packets++
	s.bytes += p.Bytes
	for i := range p.Parts {
		part := &p.Parts[i]
		if !cfg.chosen(part) {
			continue
		}
		s.total += part.Bits
		if restart {
			s.bits["where the recording starts anew"] += part.Bits
			continue
		}
		switch part.What {
		case "message": // its fields follow
		case "field":
			s.bits[elements.ReplaceAllString(fullName(part), "")] += part.Bits
		case "mask":
			s.bits["masks of "+part.Component] += part.Bits
		case "header", "checks":
			s.bits["headers of "+p.Kind] += part.Bits
		default:
			if part.Slot >= 0 {
				s.bits["heads of entries"] += part.Bits
			} else {
				s.bits[part.What] += part.Bits
			}
		}
		if part.Slot < 0 {
			continue
		}
		name := part.Entity.String()
		switch {
		case part.What == "end":
			continue
		case part.Entity == replication.NetID{}:
			name = "resources"
		case part.Entity.Generation == 0:
			name = fmt.Sprintf("slot %d", part.Slot)
		}
		e := s.entities[name]
		if e == nil {
			e = &entitySum{name: name}
			s.entities[name] = e
		}
		e.bits += part.Bits
		if part.What != "mask" && part.What != "field" {
			e.entries++
		}
	}
}

// mostLines is how many of the dearest are printed.
const mostLines = 30

// print prints the sums, the largest first. of names what they are of.
func (s *packetSum) print(w io.Writer, of string) {
	fmt.Fprintf(w, "\n%d packets, %d bytes; where the bits%s went, %.0f in all:\n\n", s.packets, s.bytes, of, s.total)
	names := sortedKeys(s.bits)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(s.bits[b], s.bits[a]) })
	width := 0
	for _, name := range names {
		width = max(width, textWidth(name))
	}
	for i, name := range names {
		if i == mostLines {
			fmt.Fprintf(w, "  and %d more\n", len(names)-i)
			break
		}
		fmt.Fprint(w, strings.TrimRight(fmt.Sprintf("  %s %10.1f  %4.1f %%  %s", pad(name, width), s.bits[name],
			100*s.bits[name]/s.total, s.types[name]), " "), "\n")
	}
	all := make([]*entitySum, 0, len(s.entities))
	for _, name := range sortedKeys(s.entities) {
		all = append(all, s.entities[name])
	}
	slices.SortStableFunc(all, func(a, b *entitySum) int { return cmp.Compare(b.bits, a.bits) })
	if len(all) > 0 {
		fmt.Fprintf(w, "\nthe dearest of %d:\n\n", len(all))
	}
	for i, e := range all {
		if i == mostLines/3 {
			break
		}
		fmt.Fprintf(w, "  %s %10.1f  entries: %d, %.1f each\n", pad(e.name, 12), e.bits, e.entries,
			e.bits/float64(max(e.entries, 1)))
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
