package interest

import (
	"math"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A grid finds the entities near a viewpoint: it keeps their positions by cell.

const (
	MaxAxes  = 3       // coordinates of a position
	MaxCells = 1 << 20 // of a grid

	// gridSlack is the fraction of a cell's side by which rounding may place an entity outside of
	// its cell.
	gridSlack = 1.0 / 64
)

// Grid is replication.Grid inside.
type Grid struct {
	Snap *snapshot.Snapshot

	Component int
	Columns   []*schema.Column
	Low       [MaxAxes]float64
	Cell      float64
	Counts    [MaxAxes]int // cells along an axis
	Cells     [][]GridEntry
	places    []gridPlace // by slot
	outside   bitset.Set  // live slots without a position
	Fresh     bool        // no entity was placed yet
}

// A GridEntry is an entity in a cell. Its position is relative to the corner of the cell, so that 32 bits suffice
// however large the grid is.
type GridEntry struct {
	at   [MaxAxes]float32
	slot int32
}

// gridPlace is where a slot's entry is.
type gridPlace struct{ cell, index int32 }

var nowhere = gridPlace{cell: -1}

// Update moves the entities that changed in this tick.
func (g *Grid) Update() {
	s := &g.Snap.Slots
	g.outside = g.outside.Grown(s.Len())
	for len(g.places) < s.Len() {
		g.places = append(g.places, nowhere)
	}
	changed := s.Changed
	if g.Fresh {
		changed, g.Fresh = s.Alive, false
	}
	h := g.Snap.Histories[g.Component]
	for slot := range changed.All() {
		switch {
		case !s.Alive.Has(slot):
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

// put places a slot at the position in a row.
func (g *Grid) put(slot int, row []uint32) {
	e := GridEntry{slot: int32(slot)}
	cell := g.locate(&e, row)
	if place := g.places[slot]; place.cell == int32(cell) {
		g.Cells[cell][place.index] = e
		return
	}
	g.remove(slot)
	g.places[slot] = gridPlace{int32(cell), int32(len(g.Cells[cell]))}
	g.Cells[cell] = append(g.Cells[cell], e)
}

// locate returns the cell of the position in a row, and stores the position in an entry of that cell.
func (g *Grid) locate(e *GridEntry, row []uint32) (cell int) {
	for i, col := range g.Columns {
		v, _ := col.Codec.Fixed.Decode(col.Code(row))
		at := g.along(i, v)
		e.at[i] = float32(v - g.corner(i, at))
		cell = cell*g.Counts[i] + at
	}
	return cell
}

// Place returns the cell of the position in a row.
func (g *Grid) Place(row []uint32) int { return g.locate(new(GridEntry), row) }

// along returns the cell of a coordinate along an axis.
func (g *Grid) along(axis int, v float64) int {
	return int(min(max((v-g.Low[axis])/g.Cell, 0), float64(g.Counts[axis]-1)))
}

// corner returns the least coordinate in a cell along an axis.
func (g *Grid) corner(axis, cell int) float64 { return g.Low[axis] + float64(cell)*g.Cell }

// remove removes a slot's entry, if it has one.
func (g *Grid) remove(slot int) {
	place := g.places[slot]
	if place == nowhere {
		return
	}
	entries := g.Cells[place.cell]
	last := entries[len(entries)-1]
	entries[place.index] = last
	g.places[last.slot].index = place.index
	g.Cells[place.cell] = entries[:len(entries)-1]
	g.places[slot] = nowhere
}

// A Viewpoint is where a peer looks from, and how far it sees.
type Viewpoint struct {
	At     [MaxAxes]float64
	Axes   int // coordinates that count, one for each field of the grid; 0: the peer has no viewpoint yet
	Radius float64
}

// find adds to Next of a view the slots that its viewpoint sees, and those without a position. stays is that of Find.
func (g *Grid) find(v *View, stays bool) {
	e, to := &v.Viewpoint, v.Next
	for b, word := range g.outside {
		to[b] |= word
	}
	if e.Axes == 0 {
		return
	}
	square, reach := e.Radius*e.Radius, e.Radius
	if stays {
		reach += float64(v.Margin)
	}
	limit := min(reach*reach, math.MaxFloat64)
	if math.IsInf(square, 1) {
		copy(to, g.Snap.Slots.Alive)
		return
	}
	if v.bands == nil {
		v.bands = new([MaxAxes][]band)
	}
	var first [MaxAxes]int
	bands := v.bands
	for i := range bands {
		first[i], bands[i] = g.bands(bands[i][:0], i, e.At[i], reach)
	}
	for i, x := range bands[0] {
		for j, y := range bands[1] {
			row := ((first[0]+i)*g.Counts[1]+first[1]+j)*g.Counts[2] + first[2]
			for k, z := range bands[2] {
				entries, at := g.Cells[row+k], [MaxAxes]float64{x.at, y.at, z.at}
				switch {
				case x.near+y.near+z.near > limit:
				case x.far+y.far+z.far <= square:
					for i := range entries {
						to.Add(int(entries[i].slot))
					}
				case limit > square:
					g.findStaying(entries, at, square, limit, v)
				default:
					g.findAmong(entries, at, square, to)
				}
			}
		}
	}
}

// findAmong adds those of the entries of a cell that are near enough to a viewpoint, which is relative to the corner of
// the cell. Branch prediction can't guess which ones are, so it has no branches.
func (g *Grid) findAmong(entries []GridEntry, at [MaxAxes]float64, square float64, to bitset.Set) {
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

// findStaying is findAmong for a view with a margin: what was in view stays up to the limit.
func (g *Grid) findStaying(entries []GridEntry, at [MaxAxes]float64, square, limit float64, v *View) {
	for i := range entries {
		entry := &entries[i]
		dx, dy, dz := float64(entry.at[0])-at[0], float64(entry.at[1])-at[1], float64(entry.at[2])-at[2]
		b, bit, distance := entry.slot>>6, uint64(1)<<(entry.slot&63), dx*dx+dy*dy+dz*dz
		if distance <= square || distance <= limit && v.InView[b]&^g.Snap.Slots.Churned[b]&bit != 0 {
			v.Next[b] |= bit
		}
	}
}

// A band is where a viewpoint is along an axis, relative to the cells at one place of that axis, and bounds the squared
// distance between the viewpoint and what is in them.
type band struct{ at, near, far float64 }

// bands appends the bands within reach of a place on an axis, and returns the place of the first one. An axis that the
// grid lacks has one layer of cells, at no distance.
func (g *Grid) bands(to []band, axis int, at, reach float64) (first int, _ []band) {
	if axis >= len(g.Columns) {
		return 0, append(to, band{})
	}
	first, last := g.along(axis, at-reach), g.along(axis, at+reach)
	for cell := first; cell <= last; cell++ {
		corner := g.corner(axis, cell)
		low := corner - g.Cell*gridSlack
		high := low + g.Cell*(1+2*gridSlack)
		below, above := at-low, high-at
		outside, far := max(-below, -above, 0), max(below, above)
		to = append(to, band{at - corner, outside * outside, far * far})
	}
	return first, to
}
