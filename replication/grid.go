package replication

import (
	"fmt"
	"math"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Grid sorts entities by position into cells, so that what is near a place is found
// without looking at what is not. Any number of peers can look at one, through
// [Interest.Grid].
type Grid struct {
	server *Server
	in     grid
}

const (
	maxAxes  = 3
	maxCells = 1 << 20

	// gridSlack is the share of a cell's side by which rounding may put an entity beside
	// the cell that it is in.
	gridSlack = 1.0 / 64
)

type gridEntry struct {
	at   [maxAxes]float32
	slot int32
}

// gridPlace says where a slot's entry is.
type gridPlace struct{ cell, index int32 }

var nowhere = gridPlace{cell: -1}

// NewGrid returns a grid over one to three fields of one component, each with a range and
// a step: "Position.X", "Position.Y". cell is the length of a cell's side, in the units of
// the fields; about half the radius that peers see serves well. A grid that would have
// more than 1,048,576 cells gets larger ones.
//
// Panics if there is no such field, or cell is not positive.
func (s *Server) NewGrid(cell float64, fields ...string) *Grid {
	s.mustExist()
	if !(cell > 0) || math.IsInf(cell, 0) {
		panic(fmt.Sprintf("replication: a grid with cells of %v: use a positive length", cell))
	}
	if len(fields) == 0 || len(fields) > maxAxes {
		panic(fmt.Sprintf("replication: a grid over %d fields: name one to three", len(fields)))
	}
	g := &Grid{server: s}
	g.in.snap = &s.snap
	g.in.component, g.in.cell, g.in.counts, g.in.fresh = -1, cell, [maxAxes]int{1, 1, 1}, true
	for _, field := range fields {
		k, col := s.schema.Field(field)
		switch {
		case col == nil:
			panic(fmt.Sprintf("replication: a grid over %q: the schema has no such field; with a range and a step there are %s", field, s.schema.GridFields()))
		case s.schema.Components[k].Resource:
			panic(fmt.Sprintf("replication: a grid over %q: that is a field of a resource, and no entity has it", field))
		case col.Codec.Op != schema.OpFixed:
			panic(fmt.Sprintf("replication: a grid over %q: that field needs a range and a step", field))
		case s.schema.Components[k].Class != 0:
			panic(fmt.Sprintf("replication: a grid over %q: that component has a condition, so that where its entities are would show", field))
		case g.in.component >= 0 && g.in.component != k:
			panic(fmt.Sprintf("replication: a grid over %q and %q: all fields must be of one component", fields[0], field))
		}
		g.in.component = k
		g.in.columns = append(g.in.columns, col)
	}
	for total := math.Inf(1); total > maxCells; g.in.cell *= 2 {
		total = 1
		for i, col := range g.in.columns {
			low, high := col.Codec.Fixed.Range()
			n := math.Floor((high-low)/g.in.cell) + 1
			total *= n
			g.in.low[i], g.in.counts[i] = low, int(min(n, maxCells))
		}
		if total <= maxCells {
			g.in.cells = make([][]gridEntry, int(total))
			break
		}
	}
	s.interest.grids = append(s.interest.grids, &g.in)
	return g
}

// update moves what changed this tick.
func (g *grid) update() {
	s := &g.snap.slots
	g.outside = g.outside.Grown(s.len())
	for len(g.places) < s.len() {
		g.places = append(g.places, nowhere)
	}
	changed := s.news
	if g.fresh {
		changed, g.fresh = s.alive, false
	}
	h := g.snap.histories[g.component]
	for b, word := range changed {
		for slot := range bitset.Slots(b, word) {
			switch {
			case !s.alive.Has(slot):
				g.remove(slot)
				g.outside.Remove(slot)
			case !h.Has(slot):
				g.remove(slot)
				g.outside.Add(slot)
			default:
				g.outside.Remove(slot)
				g.put(slot, h.Row(slot))
			}
		}
	}
}

// put gives a slot the position in a row.
func (g *grid) put(slot int, row []uint32) {
	e := gridEntry{slot: int32(slot)}
	cell := 0
	for i, col := range g.columns {
		v, _ := col.Codec.Fixed.Decode(col.Code(row))
		e.at[i] = float32(v)
		cell = cell*g.counts[i] + g.along(i, v)
	}
	if place := g.places[slot]; place.cell == int32(cell) {
		g.cells[cell][place.index] = e
		return
	}
	g.remove(slot)
	g.places[slot] = gridPlace{int32(cell), int32(len(g.cells[cell]))}
	g.cells[cell] = append(g.cells[cell], e)
}

// along returns which cell of an axis a coordinate is in.
func (g *grid) along(axis int, v float64) int {
	return int(min(max((v-g.low[axis])/g.cell, 0), float64(g.counts[axis]-1)))
}

func (g *grid) remove(slot int) {
	place := g.places[slot]
	if place == nowhere {
		return
	}
	entries := g.cells[place.cell]
	last := entries[len(entries)-1]
	entries[place.index] = last
	g.places[last.slot].index = place.index
	g.cells[place.cell] = entries[:len(entries)-1]
	g.places[slot] = nowhere
}

// An eye is where a peer looks from.
type eye struct {
	at     [maxAxes]float64
	radius float64
	open   bool
}

// LookFrom sets where the peer looks from, for the grid in its [Interest]: it sees
// entities at most radius away from the place, in the units of the grid's fields. A
// coordinate that is left out is 0, one too many does not count. An infinite radius
// shows everything. Until LookFrom is called the peer sees no entity with a position.
//
// Panics if the radius is negative or not a number, if there is no coordinate or more
// than three, or if one is not a number.
func (p *Peer) LookFrom(radius float64, place ...float64) {
	p.mustExist()
	if !(radius >= 0) || len(place) == 0 || len(place) > maxAxes {
		panic(fmt.Sprintf("replication: LookFrom(%v, %v): use a radius of 0 or more and one to three coordinates", radius, place))
	}
	e := eye{radius: radius, open: true}
	for i, v := range place {
		if math.IsNaN(v) {
			panic("replication: LookFrom a place that is not a number: use one to three coordinates in the units of the grid's fields")
		}
		e.at[i] = v
	}
	p.sight.view.eye = e
}

// find adds the slots that the eye sees to a set.
func (g *grid) find(e *eye, to bitset.Set) {
	for b, word := range g.outside {
		to[b] |= word
	}
	if !e.open {
		return
	}
	square := e.radius * e.radius
	if math.IsInf(square, 1) {
		copy(to, g.snap.slots.alive)
		return
	}
	// What is left of an axis that the grid does not have is one layer of cells, at no
	// distance.
	var first, last [maxAxes]int
	for i := range g.columns {
		first[i] = g.along(i, e.at[i]-e.radius)
		last[i] = g.along(i, e.at[i]+e.radius)
	}
	for x := first[0]; x <= last[0]; x++ {
		nearX, farX := g.squares(0, x, e)
		for y := first[1]; y <= last[1]; y++ {
			nearY, farY := g.squares(1, y, e)
			row := (x*g.counts[1] + y) * g.counts[2]
			for z := first[2]; z <= last[2]; z++ {
				nearZ, farZ := g.squares(2, z, e)
				entries := g.cells[row+z]
				switch {
				case nearX+nearY+nearZ > square:
				case farX+farY+farZ <= square:
					for i := range entries {
						to.Add(int(entries[i].slot))
					}
				default:
					g.findAmong(entries, e, square, to)
				}
			}
		}
	}
}

// findAmong adds those of the entries that are near enough. Which ones are is hard to foresee, so it has no branches.
func (g *grid) findAmong(entries []gridEntry, e *eye, square float64, to bitset.Set) {
	at := e.at
	clear(at[len(g.columns):])
	for i := range entries {
		entry := &entries[i]
		dx, dy, dz := float64(entry.at[0])-at[0], float64(entry.at[1])-at[1], float64(entry.at[2])-at[2]
		near := uint64(0)
		if dx*dx+dy*dy+dz*dz <= square {
			near = 1
		}
		to[entry.slot>>6] |= near << (entry.slot & 63)
	}
}

// squares returns bounds of the squares of the distances, along an axis, from the eye to
// what is in a cell.
func (g *grid) squares(axis, cell int, e *eye) (near, far float64) {
	if axis >= len(g.columns) {
		return 0, 0
	}
	low := g.low[axis] + float64(cell)*g.cell - g.cell*gridSlack
	high := low + g.cell*(1+2*gridSlack)
	below, above := e.at[axis]-low, high-e.at[axis]
	if outside := max(-below, -above); outside > 0 {
		near = outside * outside
	}
	far = max(below, above)
	return near, far * far
}
