package delta

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// This file simulates two endpoints: entities over 300 ticks, sent as updates against states that the
// receiver has acknowledged, over a link that loses and delays. Its oracle is the naive
// way, the full state of every entity at fixed width in every tick.

func simulatedLayout() *Layout {
	return NewLayout(
		Component{Name: "body", Fields: []Field{
			{Kind: Linear, Bits: 18, Max: 200_000}, {Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 14}, {Kind: Quat, Bits: 9},
		}},
		Component{Name: "turret", Fields: []Field{{Kind: Wrap, Bits: 10}, {Kind: Plain, Bits: 0}}},
		Component{Name: "frozen"},
		Component{Name: "state", Fields: []Field{{Kind: Plain, Bits: 1}, {Kind: Plain, Bits: 5, Max: 20}, {Kind: Linear, Bits: 64}}},
	)
}

// A gameState is the row of each component of each entity, nil where there is none.
type gameState [][][]uint32

// naiveState is a full state as text: for every entity and component one bit for
// its presence, and the fields' codes.
func naiveState(l *Layout, g gameState) (text []byte) {
	for _, rows := range g {
		for c, row := range rows {
			if row == nil {
				text = append(text, '0')
				continue
			}
			text = append(text, '1')
			for _, f := range l.Components[c].Fields {
				w := row[f.Word():]
				switch {
				case f.Kind == Quat:
					text = append(text, number(uint64(w[0]), 2)...)
					for _, x := range w[1:4] {
						text = append(text, number(uint64(x), f.Bits)...)
					}
				case f.Bits > 32:
					text = append(text, number(uint64(w[0]), 32)...)
					text = append(text, number(uint64(w[1]), f.Bits-32)...)
				default:
					text = append(text, number(uint64(w[0]), f.Bits)...)
				}
			}
		}
	}
	return text
}

// A simulatedGame moves entities about.
type simulatedGame struct {
	rng    *rand.Rand
	layout *Layout
	state  gameState
	speed  [][3]int
	spin   []int
}

// step goes on by one tick. A state is not changed: rows are made anew.
func (g *simulatedGame) step() {
	rng, next := g.rng, make(gameState, len(g.state))
	for e, rows := range g.state {
		next[e] = slices.Clone(rows)
		if rng.IntN(60) == 0 { // another set; the first component stays
			c := 1 + rng.IntN(len(rows)-1)
			s := &script{randomBytes(rng, 200)}
			if rows[c] == nil {
				next[e][c] = s.row(&g.layout.Components[c], nil)
			} else {
				next[e][c] = nil
			}
		}
		if rng.IntN(120) == 0 {
			g.speed[e] = [3]int{rng.IntN(400) - 200, rng.IntN(40) - 20, rng.IntN(3) - 1}
			g.spin[e] = rng.IntN(21) - 10
		}
		if rng.IntN(4) == 0 && e%3 == 0 { // some rest most of the time
			g.speed[e], g.spin[e] = [3]int{}, 0
		}
		body := slices.Clone(rows[0])
		for i, v := range g.speed[e] {
			body[i] = uint32(min(max(int(body[i])+v, 0), int(g.layout.Components[0].Fields[i].Max)))
		}
		if g.spin[e] != 0 {
			body[4+e%3] = uint32(min(max(int(body[4+e%3])+g.spin[e], 0), 511))
			if rng.IntN(200) == 0 { // a jump
				body = (&script{randomBytes(rng, 100)}).row(&g.layout.Components[0], body)
			}
		}
		next[e][0] = body
		if next[e][1] != nil {
			next[e][1] = []uint32{uint32(int(next[e][1][0])+g.spin[e]) & 1023, 0}
		}
		if next[e][3] != nil && rng.IntN(40) == 0 {
			s := &script{randomBytes(rng, 100)}
			next[e][3] = s.row(&g.layout.Components[3], next[e][3])
		}
	}
	g.state = next
}

// A endpoint sends or receives. The receiver knows what it has decoded before and
// nothing else.
type endpoint struct {
	layout *Layout
	packed *Packed
	held   map[Tick]gameState // what the receiver decoded
}

const simulatedWindow = 64

// simulatedRatio is the ratio of baselines that may be one only.
func simulatedRatio(now Tick, b Baselines) int64 {
	if !b.Two {
		return 0
	}
	return Ratio(now, b.A1, b.A2)
}

// send writes a tick, against baselines of each entity's own choice.
func (x *endpoint) send(t *testing.T, w *bitbuf.Writer, now Tick, state gameState, histories []*testRows, choose func() (Baselines, bool)) {
	names := NewNames(now)
	row := func(c, e int, t1 Tick) []uint32 {
		row, known := histories[c].at(e, t1)
		require.True(t, known)
		return row
	}
	for e, rows := range state {
		b, ok := choose()
		w.WriteBool(ok)
		if ok {
			w.WriteBool(names.AtFront(b))
			names.Write(w, b)
		}
		base, base2 := make([][]uint32, len(rows)), make([][]uint32, len(rows))
		for c := range rows {
			if ok {
				base[c] = row(c, e, b.A1)
				if b.Two {
					base2[c] = row(c, e, b.A2)
				}
			}
		}
		for c := range rows {
			if w.WriteBool(rows[c] != nil); rows[c] == nil {
				continue
			}
			require.True(t, histories[c].has(e))
			x.packed.EncodeRow(w, c, histories[c].row(e), base[c], base2[c], simulatedRatio(now, b))
		}
	}
	x.packed.Costs = x.packed.Costs[:0]
}

// receive reads a tick and keeps it.
func (x *endpoint) receive(t *testing.T, r *bitbuf.Reader, now Tick, entities int) gameState {
	names := NewNames(now)
	state := make(gameState, entities)
	nothing := make([][]uint32, len(x.layout.Components))
	for e := range state {
		base, base2, ratio := nothing, nothing, int64(0)
		if r.ReadBool() {
			b := names.Read(r, r.ReadBool())
			require.Contains(t, x.held, b.A1)
			base, ratio = x.held[b.A1][e], simulatedRatio(now, b)
			if b.Two {
				require.Contains(t, x.held, b.A2)
				base2 = x.held[b.A2][e]
			}
		}
		state[e] = make([][]uint32, len(x.layout.Components))
		for c := range state[e] {
			if !r.ReadBool() {
				continue
			}
			state[e][c] = make([]uint32, x.layout.Components[c].Words())
			x.packed.DecodeRow(r, c, state[e][c], base[c], base2[c], ratio)
		}
		require.NoError(t, r.Err(), "entity %d", e)
	}
	x.held[now] = state
	for held := range x.held {
		if now-held > simulatedWindow {
			delete(x.held, held)
		}
	}
	return state
}

func TestDeltasRestoreFullStates(t *testing.T) {
	const entities, ticks = 25, 300
	first := Tick(1<<32 - 120)
	rng := randomOf(t)
	layout := simulatedLayout()
	sender := &endpoint{layout: layout, packed: NewPacked(layout)}
	receiver := &endpoint{layout: simulatedLayout(), packed: NewPacked(simulatedLayout()), held: map[Tick]gameState{}}
	histories := make([]*testRows, len(layout.Components))
	for c := range histories {
		histories[c] = newTestRows(layout.Components[c].Words(), simulatedWindow, first)
	}

	g := &simulatedGame{rng: rng, layout: layout, state: make(gameState, entities), speed: make([][3]int, entities), spin: make([]int, entities)}
	for e := range g.state {
		g.state[e] = make([][]uint32, len(layout.Components))
		g.state[e][0] = (&script{randomBytes(rng, 200)}).row(&layout.Components[0], nil)
	}

	var acked []Tick              // that the sender knows of, in the order in which it learnt of them
	underway := map[Tick][]Tick{} // acknowledgements, by the tick of their arrival
	deltaBits, naiveBits := 0, 0
	buf := make([]byte, 1<<16)
	for i := range Tick(ticks) {
		now := first + i
		g.step()
		for e, rows := range g.state {
			for c, row := range rows {
				histories[c].set(e, now, row)
			}
		}
		acked = append(acked, underway[now]...)
		choose := func() (b Baselines, ok bool) {
			var fresh []Tick
			for _, a := range acked {
				if now-a <= simulatedWindow {
					fresh = append(fresh, a)
				}
			}
			if len(fresh) == 0 || rng.IntN(50) == 0 {
				return b, false
			}
			b.A1 = fresh[len(fresh)-1-rng.IntN(min(len(fresh), 1+rng.IntN(4)))]
			a2 := fresh[rng.IntN(len(fresh))]
			if d := b.A1 - a2; d >= 1 && d <= MaxSpan && rng.IntN(8) > 0 {
				b.A2, b.Two = a2, true
			}
			return b, true
		}
		w := bitbuf.NewWriter(buf)
		sender.send(t, &w, now, g.state, histories, choose)
		require.NoError(t, w.Err())
		naive := naiveState(layout, g.state)
		deltaBits, naiveBits = deltaBits+w.Len(), naiveBits+len(naive)
		if rng.IntN(4) == 0 {
			continue // lost
		}
		r := bitbuf.NewReader(w.Bytes())
		got := receiver.receive(t, &r, now, entities)
		require.NoError(t, r.Finish())
		require.Equal(t, string(naive), string(naiveState(layout, got)), "tick %d", now)
		if rng.IntN(8) > 0 { // or the acknowledgement is lost
			at := now + 1 + Tick(rng.IntN(20))
			underway[at] = append(underway[at], now)
		}
	}
	t.Logf("%d bits per entity and tick, %d at fixed width", deltaBits/entities/ticks, naiveBits/entities/ticks)
	require.Less(t, 10*deltaBits, 7*naiveBits)
}
