package compact

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

func TestKeptModels(t *testing.T) {
	var k KeptModels
	packet := func(sequence uint32, tick delta.Tick, first, last uint32) *State {
		s := k.Take()
		s.Tick = tick
		k.Keep(sequence, first, last, s)
		return s
	}
	require.Nil(t, k.Choose(0), "nothing is known to have come")
	packet(1, 10, 0, 9)
	packet(2, 11, 0, 4)
	packet(3, 11, 5, 20)
	require.Nil(t, k.Choose(0))

	k.Acknowledge(1)
	require.EqualValues(t, 1, k.Choose(15).Sequence)
	k.Acknowledge(2)
	require.EqualValues(t, 2, k.Choose(15).Sequence, "a newer one")
	k.Acknowledge(3)
	require.EqualValues(t, 3, k.Choose(15).Sequence, "of the same tick, but of these slots")
	require.EqualValues(t, 2, k.Choose(3).Sequence)
	k.Lose(3)
	require.EqualValues(t, 3, k.Choose(15).Sequence, "what came is not lost")
	k.Acknowledge(77)
	k.Lose(77)

	packet(4, 14, 0, 1)
	k.Acknowledge(4)
	require.Len(t, k.List, 1, "older ones are not needed any more")
	require.Len(t, k.Free, 3)
	packet(5, 15, 0, 1)
	k.Lose(5)
	k.Acknowledge(5)
	require.EqualValues(t, 4, k.Choose(0).Sequence, "too late: it was given up")
}

func TestKeptModelsAreFew(t *testing.T) {
	var k KeptModels
	for i := range uint32(3) {
		k.Keep(i, 0, 0, k.Take())
		k.Acknowledge(i)
	}
	n := uint32(3)
	for ; k.Room(); n++ {
		require.LessOrEqual(t, len(k.List), MaxKept-1)
		k.Keep(n, 0, 0, k.Take())
	}
	require.Len(t, k.List, MaxKept)
	require.NotNil(t, k.Choose(0), "one that came is left")
	k.Lose(n - 1)
	require.True(t, k.Room())
}

// TestModelsThatMayBeDroppedAreNotReferenced: a model is not referenced once the client may have
// dropped it.
func TestModelsThatMayBeDroppedAreNotReferenced(t *testing.T) {
	var server KeptModels
	var client ModelStore
	server.Keep(0, 0, 0, server.Take())
	client.Keep(0, new(State))
	server.Acknowledge(0)
	named := 0
	for n := uint32(1); n < 200; n++ { // all packets arrive, but no acknowledgement does
		if m := server.Choose(0); m != nil {
			named++
			require.NotNil(t, client.At(m.Sequence))
		}
		server.Keep(n, 0, 0, server.Take())
		server.Lose(n)
		client.Keep(n, new(State))
	}
	require.Equal(t, MaxSince, named)
	require.Nil(t, client.At(0))
	require.Len(t, client.List, HeldModels)
}

// TestDroppedModelsAreNotNamed: whatever acknowledgements are lost or overtake others, the server never goes back to a
// model that the client has dropped since.
func TestDroppedModelsAreNotNamed(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 3))
	type packet struct {
		sequence, root uint32
		named, kept    bool
		at             delta.Tick // of its arrival
	}
	for _, trip := range []int{1, 6, 30} {
		var server KeptModels
		var client ModelStore
		var inFlight []packet
		acks := map[delta.Tick][]uint32{} // by the tick of their arrival
		most, sequence := 0, ^uint32(0)-1000
		for now := ^delta.Tick(0) - 500; now != 1500; now++ { // both wrap around
			for _, ack := range acks[now] {
				server.Acknowledge(ack)
			}
			for range 1 + rng.IntN(3) {
				p := packet{sequence: sequence, at: now + delta.Tick(trip)}
				if m := server.Choose(rng.IntN(100)); m != nil {
					p.root, p.named = m.Sequence, true
				}
				if p.kept = server.Room(); p.kept {
					first := rng.Uint32N(100)
					server.Keep(sequence, first, first+10, &State{Tick: now})
				}
				inFlight = append(inFlight, p)
				sequence++
			}
			for len(inFlight) > 0 && inFlight[0].at == now {
				p := inFlight[0]
				if inFlight = inFlight[1:]; rng.IntN(5) == 0 {
					server.Lose(p.sequence)
					continue
				}
				if p.named {
					root := client.At(p.root)
					require.NotNil(t, root)
					client.Named(root.Tick)
				}
				if p.kept {
					client.Keep(p.sequence, &State{Tick: now - delta.Tick(trip)})
				}
				if rng.IntN(3) > 0 && now/50%2 == 0 { // there are outages
					late := now + 1 + delta.Tick(rng.IntN(10))
					acks[late] = append(acks[late], p.sequence)
				}
			}
			most = max(most, len(client.List))
		}
		t.Logf("a round trip of %d to %d ticks: %d models at most", trip+1, trip+10, most)
	}
}

// TestModelsThatAreNoLongerNamedAreDropped, and their memory is used again.
func TestModelsThatAreNoLongerNamedAreDropped(t *testing.T) {
	var h ModelStore
	spare := new(State)
	states := map[*State]bool{spare: true}
	for now := range delta.Tick(200) {
		if now > 6 {
			h.Named(now - 6)
		}
		spare.Tick = now
		spare = h.Keep(uint32(now), spare)
		states[spare] = true
		for back := range min(now, overtakenTicks+6) {
			require.NotNil(t, h.At(uint32(now-back)))
		}
	}
	require.LessOrEqual(t, len(h.List), overtakenTicks+8)
	require.LessOrEqual(t, len(states), overtakenTicks+10)
}

func TestModelStoreKeepsTheNewest(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 0))
	var h ModelStore
	first := ^uint32(0) - 100 // the numbers wrap
	order := rng.Perm(200)
	for i, n := range order {
		s := &State{Tick: delta.Tick(n)}
		old := h.Keep(first+uint32(n), s)
		require.NotNil(t, old)
		seen := append([]int(nil), order[:i+1]...)
		for _, n := range seen {
			newer := 0
			for _, o := range seen {
				if o > n {
					newer++
				}
			}
			got := h.At(first + uint32(n))
			require.Equal(t, newer < HeldModels, got != nil)
			if got != nil {
				require.EqualValues(t, n, got.Tick)
			}
		}
	}
}

func TestModelsOfABurstAreGivenBack(t *testing.T) {
	var k KeptModels
	for i := range uint32(20) {
		k.Keep(i, 0, 0, k.Take())
	}
	for i := range uint32(19) {
		k.Lose(i)
	}
	require.Len(t, k.Free, 19)
	for now := delta.Tick(1); now < 3*ackstate.ResizeTicks; now++ { // one or two models are needed
		k.Shrink(now)
		a := k.Take()
		if now%2 == 0 {
			k.Give(k.Take())
		}
		k.Give(a)
	}
	require.Len(t, k.Free, 2)
}
