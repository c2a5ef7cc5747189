package rewind

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A stampMeter measures what stamps take in packets of inputs.
type stampMeter struct {
	t            testing.TB
	schema       *schema.Schema
	packed       *delta.Packed
	given        map[delta.Tick]wire.Stamp
	bits, inputs int
	packets      int
	near         uint32 // a tick near to the inputs
}

// measure reads a packet of the client.
func (m *stampMeter) measure(packet []byte) {
	var h wire.MessageHeader
	rest, ok := h.Parse(packet[4:], 0)
	if !ok || h.Kind != wire.KindInputs {
		return
	}
	require.True(m.t, h.Stamped)
	m.packets++
	r := bitbuf.NewReader(rest)
	last := delta.Tick(wire.Extend16(uint16(r.ReadBits(16)), m.near))
	n, refers := delta.Tick(r.ReadBits(5)), true
	if n == 31 {
		n, refers = delta.Tick(r.ReadBits(5)), false
		m.bits += 5
	}
	rows := make([][]uint32, 0, 32)
	ticks := make([]delta.Tick, 0, 32)
	for tick := last - n; !tick.After(last); tick++ {
		if !r.ReadBool() {
			continue
		}
		row := make([]uint32, m.schema.Input.Words)
		switch k := len(rows); k {
		case 0:
			m.packed.DecodeRow(&r, 0, row, nil, nil, 0)
		case 1:
			m.packed.DecodeRow(&r, 0, row, rows[0], nil, 0)
		default:
			m.packed.DecodeRow(&r, 0, row, rows[k-1], rows[k-2], delta.Ratio(tick, ticks[k-1], ticks[k-2]))
		}
		rows, ticks = append(rows, row), append(ticks, tick)
	}
	from := r.Pos()
	var d wire.Delays
	if refers {
		from, end := wire.ReferenceTicks(last-n, int(n)+1)
		for ; from != end; from++ {
			if s, ok := m.given[from]; ok {
				d.Push(from, &s)
			}
		}
	}
	for _, tick := range ticks {
		s, ok := d.Read(&r, tick)
		require.True(m.t, ok)
		require.Equal(m.t, m.given[tick], s)
	}
	m.bits += r.Pos() - from
	m.inputs += len(ticks)
	require.NoError(m.t, r.Finish())
}

// stampBits returns what stamps take per input in a packet, all included, of a client that has a play-out.
func stampBits(t testing.TB, rate, loss float64) float64 {
	g := newGame(t, 7, rate, loss)
	g.playing, g.exact = false, false
	g.attach()
	m := stampMeter{t: t, schema: g.inside.Schema, packed: delta.NewPacked(g.inside.Schema.MessageLayout)}
	m.given = map[delta.Tick]wire.Stamp{}
	g.input = func(tick uint32) {
		if replication.SetInput(g.client, replication.Tick(tick), Shot{Fire: g.rng.IntN(9) == 0}) == nil {
			m.given[delta.Tick(tick)] = g.inside.Messages.Shown
		}
	}
	g.up.watch = func(p []byte) {
		if m.near = g.inputTick(); g.now > 5 {
			m.measure(p)
		}
	}
	g.run(65)
	require.Greater(t, m.packets, 100)
	return float64(m.bits) / float64(m.inputs)
}

// TestStampsTakeFewBits: at most 4 bits an input at 144 frames a second, whatever is lost.
func TestStampsTakeFewBits(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, rate := range []float64{10, 20, 30, 60, 128} {
		for _, loss := range []float64{0, 0.05, 0.2} {
			bits := stampBits(t, rate, loss)
			t.Logf("%3.0f ticks a second, %2.0f %% loss: %.2f bits", rate, 100*loss, bits)
			assert.LessOrEqual(t, bits, 4.0)
		}
	}
}

// TestStampsArriveAsGiven: under loss, each input has the stamp that the client showed then, from the first one on
// that was given with play-out.
func TestStampsArriveAsGiven(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, parts := range []int{0, 3, 6} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			g := newGame(t, replicationtest.Seed(t), 30, 0.2)
			g.parts = parts
			given := map[uint32]wire.Stamp{}
			g.input = func(tick uint32) {
				if g.rng.IntN(10) > 0 && replication.SetInput(g.client, replication.Tick(tick), Shot{}) == nil {
					given[tick] = g.inside.Messages.Shown
				}
			}
			stamped := 0
			g.tick = func() {
				in := seam.OfPeer(g.peer)
				tick := g.server.Tick() + 1
				if in.Messages == nil {
					return
				}
				if s, ok := in.Messages.Inputs.Stamp(tick); ok {
					stamped++
					require.Equal(t, given[uint32(tick)], s.Shown)
				} else if _, exact := replication.Input[Shot](g.peer, tick); exact {
					require.Less(t, g.now, 3.0, "only the first ones may have none")
				}
			}
			g.run(120)
			require.Greater(t, stamped, 2500)
		})
	}
}
