package replication

import (
	"fmt"
	"math"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A Grid finds the entities near a place by their positions, for [Interest.Grid]. Any number of peers can share one.
type Grid struct {
	server *Server
	in     interest.Grid
}

func newGrid(s *Server, cell float64, fields []string) *Grid {
	if !(cell > 0) || math.IsInf(cell, 0) {
		panic(fmt.Sprintf("replication: a grid with cells of %v: use a positive length", cell))
	}
	if len(fields) == 0 || len(fields) > interest.MaxAxes {
		panic(fmt.Sprintf("replication: a grid over %d fields: name one to three", len(fields)))
	}
	g := &Grid{server: s}
	g.in.Snap = &s.snap
	g.in.Component, g.in.Cell, g.in.Counts, g.in.Fresh = -1, cell, [interest.MaxAxes]int{1, 1, 1}, true
	for _, name := range fields {
		k, col := s.schema.Field(name)
		switch {
		case col == nil:
			panic(fmt.Sprintf("replication: a grid over %q: the schema has no such field; with a range and a "+
				"step there are %s", name, s.schema.GridFields()))
		case s.schema.Components[k].Resource:
			panic(fmt.Sprintf("replication: a grid over %q: that is a field of a resource, and no entity has it", name))
		case !col.Codec.IsFixed():
			panic(fmt.Sprintf("replication: a grid over %q: that field lacks a range or a step; both have %s",
				name, s.schema.GridFields()))
		case s.schema.Components[k].Class != 0:
			panic(fmt.Sprintf("replication: a grid over %q: that component has a condition, so that where "+
				"its entities are would show", name))
		case g.in.Component >= 0 && g.in.Component != k:
			panic(fmt.Sprintf("replication: a grid over %q and %q: all fields must be of one "+
				"component", fields[0], name))
		}
		g.in.Component = k
		g.in.Columns = append(g.in.Columns, col)
	}
	for ; ; g.in.Cell *= 2 {
		total := 1.
		for i, col := range g.in.Columns {
			low, high := col.Codec.Fixed.Range()
			n := math.Floor((high-low)/g.in.Cell) + 1
			total *= n
			g.in.Low[i], g.in.Counts[i] = low, int(min(n, interest.MaxCells))
		}
		if total <= interest.MaxCells {
			g.in.Cells = make([][]interest.GridEntry, int(total))
			break
		}
	}
	s.interest.Grids = append(s.interest.Grids, &g.in)
	return g
}

// guard returns what finds two goroutines in the grid's server, and panics if there is no grid.
func (g *Grid) guard() *exclusive.Guard {
	if g == nil || g.server == nil {
		panic("replication: there is no grid: Server.NewGrid makes one")
	}
	return &g.server.calls
}

// SortSpawns gives entities that spawn together, 64 or more of the same components in a tick, slots in the order of
// their cells, so that servers with many peers take less time. Call it before the first [Server.Replicate]. A server
// has one such grid, the latest.
//
// Don't use it if clients must not know where entities spawned: slots show about where, and the gaps between them how
// many that a client does not see.
func (g *Grid) SortSpawns() {
	defer g.guard().Leave(g.guard().Enter(exclusive.SortSpawns))
	g.server.snap.Capture.Arrangement = &snapshot.Arrangement{Component: g.in.Component, Place: g.in.Place}
}
