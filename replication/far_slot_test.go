package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestAFarSlotDoesNotCutAPacketOff: among changes of near slots, one far away makes the gaps before it dearer. No
// packet may become larger by that than it has room.
func TestAFarSlotDoesNotCutAPacketOff(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, mode := range []string{"budget", "ack", "lossy"} {
		t.Run(mode, func(t *testing.T) { playFarSlot(t, mode) })
	}
}

func playFarSlot(t *testing.T, mode string) {
	const n = 60_000
	w := ecs.NewWorld()
	pos, marker := ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
	es := make([]ecs.Entity, n)
	for i := range es {
		es[i] = w.NewEntity(pos, marker)
	}
	schema := func() *Schema {
		s := NewSchema()
		Register[tPosition](s)
		return s
	}
	s := NewServer(&w, schema())
	var down, up [][]byte
	p := s.Connect(func(b []byte) error { down = append(down, append([]byte(nil), b...)); return nil }, WithCoding(Packed))
	if mode == "budget" {
		p.SetBudget(1200 * 60)
	}
	cw := ecs.NewWorld()
	c := NewClientWith(&cw, schema(), func(b []byte) error { up = append(up, append([]byte(nil), b...)); return nil })
	rng := rand.New(rand.NewPCG(1, 2))
	bad, packets := 0, 0
	for tick := range 1500 {
		if tick > 100 {
			k := 60 + tick%300
			for range k {
				rng.IntN(400) // the sequence that met packets that were cut off
				i := rng.IntN(1000)
				v := (*tPosition)(w.Get(es[i], pos))
				*v = tPosition{float32(rng.IntN(200) - 100), float32(rng.IntN(200) - 100), float32(rng.IntN(200) - 100)}
			}
			(*tPosition)(w.Get(es[n-1], pos)).X = float32(rng.IntN(200) - 100)
		}
		s.Replicate()
		for _, b := range down {
			packets++
			if mode == "lossy" && tick > 100 && rng.IntN(4) == 0 {
				continue
			}
			if err := c.Receive(b); err != nil {
				bad++
				if bad < 5 {
					t.Logf("tick %d: packet of %d bytes: %v", tick, len(b), err)
				}
			}
		}
		down = down[:0]
		require.NoError(t, c.Apply())
		for _, b := range up {
			if mode == "ack" && tick > 100 && rng.IntN(2) == 0 {
				continue
			}
			if err := p.Receive(b); err != nil {
				t.Log("up", err)
			}
		}
		up = up[:0]
	}
	require.Zero(t, bad, "of %d packets", packets)
}
