package replication

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Packets with resources that no honest server sends.

// TestSlotsOfOtherKinds: such packets change nothing.
func TestSlotsOfOtherKinds(t *testing.T) {
	const position, match, weather = 0, 1, 3 // in resourceSchema
	x := connectedWire(t, resourceSchema())
	setResource(x.world, rsWeather{Rain: 1})
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(3)
	(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X = 1
	x.rounds(3) // forged packets are later than the known resources
	packed := delta.NewPacked(x.client.schema.Layout)
	fullState := func(w *bitbuf.Writer, slot uint32, components ...int) {
		var set wire.ComponentSet
		for _, k := range components {
			set.Add(k)
		}
		beginEntries(w, wire.ListedSlot{Slot: slot, Kind: wire.EntryFull})
		w.WriteExpGolomb(1, wire.GenerationOrder)
		wire.WriteComponentSet(w, &set, &wire.ComponentSet{})
		for _, k := range components {
			c := &x.client.schema.Components[k]
			packed.EncodeRow(w, k, make([]uint32, c.Words), nil, nil, 0)
		}
	}
	for name, put := range map[string]func(w *bitbuf.Writer){
		"resources and components": func(w *bitbuf.Writer) { fullState(w, 0, position, weather) },
		"components in slot 0":     func(w *bitbuf.Writer) { fullState(w, 0, position) },
		"resources elsewhere":      func(w *bitbuf.Writer) { fullState(w, 5, weather) },
		"both elsewhere":           func(w *bitbuf.Writer) { fullState(w, 5, position, match) },
		"no resources any more": func(w *bitbuf.Writer) {
			beginEntries(w, wire.ListedSlot{Kind: wire.EntryDespawn})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := bitbuf.NewWriter(make([]byte, 2000))
			put(&w)
			before, refused := worldHash(x.client), x.client.Stats().RefusedPackets
			x.receiveForged(byte(-w.Len()&7), w.Bytes())
			require.Equal(t, refused+3, x.client.Stats().RefusedPackets)
			require.Equal(t, before, worldHash(x.client))
		})
	}

	// A packet that is allowed: another generation is the same resources.
	p := resourceOf[rsWeather](x.mirror)
	w := bitbuf.NewWriter(make([]byte, 2000))
	fullState(&w, 0, weather)
	x.receiveForged(byte(-w.Len()&7), w.Bytes())
	require.Same(t, p, resourceOf[rsWeather](x.mirror))
	require.Equal(t, rsWeather{Wind: [2]float32{-50, -50}}, *p)
}

// TestForgedResources: packets with any bits are an error or a change, but no panic.
func TestForgedResources(t *testing.T) {
	t.Parallel()
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	taken := uint64(0)
	for range rounds {
		x := connectedWire(t, resourceSchema(), WithSeed(seed))
		g := &resourceGame{rng: rng, world: x.world}
		for range 20 {
			g.step()
			var own [][]byte
			for _, p := range x.replicate() {
				own = append(own, p)
				_ = x.client.Receive(p)
			}
			x.answer(x.apply()...)
			if len(own) == 0 || len(own[0]) < 12 {
				continue
			}
			at := 9
			if own[0][wire.ChecksumSize]&wire.LongBit != 0 {
				at = 13
			}
			body := bytes.Clone(own[0][min(at, len(own[0])):])
			for range 1 + rng.IntN(6) {
				if len(body) > 0 {
					body[rng.IntN(min(len(body), 12))] ^= 1 << rng.IntN(8)
				}
			}
			before := x.client.Stats().Packets
			x.receiveForged(own[0][wire.ChecksumSize]>>wire.PadShift&7, body)
			taken += x.client.Stats().Packets - before
		}
	}
	require.NotZero(t, taken, "some make sense")
}
