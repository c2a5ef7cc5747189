package main

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// recording is a game in quantised codes: the state of every slot at every tick.
type recording struct {
	components []span  // columns of each component
	widths     []uint8 // by column: the fewest bits that hold all of its codes
	ticks      []state
}

// span is the columns from one up to, but not including, another.
type span struct{ from, to int }

// state is the rows of all slots, nil for empty ones.
type state []*row

// row is the state of an entity.
type row struct {
	life  int    // number of the entity
	has   []bool // by component
	codes []uint64
}

// equal reports whether two rows have the same components and codes. They may be nil.
func (r *row) equal(o *row) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r == o || slices.Equal(r.has, o.has) && slices.Equal(r.codes, o.codes)
}

// at returns a slot's row.
func (s state) at(slot int) *row {
	if slot >= len(s) {
		return nil
	}
	return s[slot]
}

// equal reports whether two states are the same.
func (s state) equal(o state) bool {
	for i := range max(len(s), len(o)) {
		if !s.at(i).equal(o.at(i)) {
			return false
		}
	}
	return true
}

// read reads what "examples/trace -codes" prints. An entity gets the lowest free slot.
func read(src io.Reader) (*recording, error) {
	in := csv.NewReader(bufio.NewReaderSize(src, 1<<16))
	in.ReuseRecord = true
	names, err := in.Read()
	if err != nil {
		return nil, err
	}
	r := &recording{widths: make([]uint8, len(names)-2)}
	last := ""
	for i, name := range names[2:] {
		component, _, _ := strings.Cut(name, ".")
		if component != last {
			r.components, last = append(r.components, span{i, i}), component
		}
		r.components[len(r.components)-1].to = i + 1
	}
	p := player{recording: r, slots: map[string]int{}}
	for {
		record, err := in.Read()
		if err == io.EOF {
			return r, nil
		}
		if err == nil {
			err = p.play(record)
		}
		if err != nil {
			return nil, err
		}
	}
}

// player plays the rows of a recording.
type player struct {
	*recording
	slots map[string]int // by entity
	lives int
	first uint64
}

func (p *player) play(record []string) error {
	tick, err := strconv.ParseUint(record[0], 10, 32)
	if err != nil {
		return err
	}
	if p.ticks == nil {
		p.first, p.ticks = tick, []state{nil}
	}
	for uint64(len(p.ticks)) <= tick-p.first { // the rows go on
		p.ticks = append(p.ticks, slices.Clone(p.ticks[len(p.ticks)-1]))
	}
	now := &p.ticks[len(p.ticks)-1]
	slot, lives := p.slots[record[1]]
	made, err := p.parse(record[2:])
	if err != nil {
		return err
	}
	switch {
	case made == nil && lives:
		(*now)[slot] = nil
		delete(p.slots, record[1])
	case made != nil && lives:
		made.life = (*now)[slot].life
		(*now)[slot] = made
	case made != nil:
		if slot = slices.Index(*now, nil); slot < 0 {
			slot = len(*now)
			*now = append(*now, nil)
		}
		p.lives++
		made.life = p.lives
		(*now)[slot], p.slots[strings.Clone(record[1])] = made, slot
	}
	return nil
}

// parse returns a row, or nil if it has no components.
func (p *player) parse(cells []string) (*row, error) {
	r := &row{has: make([]bool, len(p.components)), codes: make([]uint64, len(cells))}
	any := false
	for k, c := range p.components {
		if r.has[k] = cells[c.from] != ""; !r.has[k] {
			continue
		}
		any = true
		for i := c.from; i < c.to; i++ {
			code, err := strconv.ParseUint(cells[i], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("a code: %w", err)
			}
			r.codes[i] = code
			p.widths[i] = max(p.widths[i], uint8(bits.Len64(code)))
		}
	}
	if !any {
		return nil, nil
	}
	return r, nil
}
