package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// tForSpectators is the marker of a second server.
type tForSpectators Replicated

// TestTwoServersOfOneWorld: each server replicates the entities with its marker, with a schema and
// clients of its own.
func TestTwoServersOfOneWorld(t *testing.T) {
	seed := seedOf(t)
	cfg := netsim.Config{Latency: 2, Jitter: 1, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, ReorderBy: 4}
	w := ecs.NewWorld()
	public := NewSchema()
	Register[tHealth](public)
	Register[tPosition](public)
	players := NewServer(&w, testSchema(), WithSeed(seed))
	spectators := NewServer(&w, public, WithSeed(seed+1), WithMarker[tForSpectators]())
	second := ecs.ComponentID[tForSpectators](&w)
	require.NotEqual(t, players.snap.Capture.Marker, spectators.snap.Capture.Marker)

	g := newGame(seed, &w, faceOf(players.schema), 20)
	w.NewEntity(g.marker, second) // these two stay, whatever the game does
	w.NewEntity(g.marker)
	ends := [2][]*end{{connect(players, seed, cfg)}, {connect(spectators, seed+1, cfg)}}
	truths := [2]*truth{newTruth(), newTruth()}
	for tick := range 800 {
		g.step()
		if n := len(g.entities); n > 0 && tick%3 == 0 { // shown to spectators, or no longer
			if e := g.entities[g.rng.IntN(n)]; w.Has(e, second) {
				w.Remove(e, second)
			} else {
				w.Add(e, second)
			}
		}
		tickAll(t, players, truths[0], ends[0])
		tickAll(t, spectators, truths[1], ends[1])
	}
	for i, s := range []*Server{players, spectators} {
		ends[i][0].link.SetConfig(netsim.Config{})
		requireEqualSoon(t, s, truths[i], ends[i], 100)
		require.Zero(t, s.Stats().CopiedMarkers)
	}
	require.NotEmpty(t, truths[1].live)
	require.Less(t, len(truths[1].live), len(truths[0].live))
}

// TestTwoServersThatShareAMarkerPanic: otherwise each would take the other's entities for new ones,
// in every tick.
func TestTwoServersThatShareAMarkerPanic(t *testing.T) {
	const sentence = "replication: two servers replicate this world and write to the same markers: give each its own with WithMarker, or Close the one that is not in use"
	for _, sameSlots := range []bool{true, false} {
		x := connectedWire(t, testSchema())
		var first ecs.Entity
		for i := range 5 {
			if e := x.spawn(ecs.ComponentID[tPosition](x.world)); i == 0 {
				first = e
			}
		}
		x.round()
		if !sameSlots {
			x.world.RemoveEntity(first)
			x.round()
		}
		other := NewServer(x.world, testSchema())
		require.PanicsWithValue(t, sentence, func() {
			for range 10 {
				other.Replicate()
				x.server.Replicate()
			}
		})
	}
}

// TestAServerFollowsAnother in the same world: the markers are those of the old server.
func TestAServerFollowsAnother(t *testing.T) {
	for _, closed := range []bool{true, false} {
		x := connectedWire(t, testSchema())
		g := newGame(1, x.world, faceOf(x.server.schema), 10)
		for range 50 {
			g.step()
			x.round()
		}
		if closed {
			x.server.Close()
		}
		x.server = NewServer(x.world, faceOf(x.server.schema), WithSeed(2))
		x.connect()
		x.restart(faceOf(x.server.schema), 8)
		for range 50 {
			g.step()
			x.round()
		}
		x.rounds(3)
		x.requireEqual()
		require.Zero(t, x.server.Stats().CopiedMarkers)
	}
}

// TestMarkersOfAnotherServerAreNotCopies: a world was saved and restored.
func TestMarkersOfAnotherServerAreNotCopies(t *testing.T) {
	x, e, move := crowd(t, 3)
	for _, e := range e {
		*(*Replicated)(x.world.Get(e, ReplicatedID(x.world))) = Replicated{slot: 3, owner: x.server.snap.Capture.Owner + 2}
	}
	move(e[1], 1)
	x.rounds(5)
	x.requireEqual()
	require.Zero(t, x.server.Stats().CopiedMarkers)
}

func TestForeignMarkersAreRefused(t *testing.T) {
	type wrong struct{ X int }
	require.PanicsWithValue(t, "replication: WithMarker: declare the marker like this: type wrong replication.Replicated",
		func() { WithMarker[wrong]() })
}
