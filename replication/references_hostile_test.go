package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
)

// References over bad networks, and in packets of any bits.

// TestReferencesConvergeOverHostileLinks: whatever a game does to its references and a network to
// its packets, a client's reference is to the replica of the entity, in the same generation, that
// the server's entity referenced in that tick, or is zero. Views change, acks fail for ten seconds,
// and the world is reset meanwhile.
func TestReferencesConvergeOverHostileLinks(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(5000, 600)
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, referenceSchema(), WithSeed(seed))
	g := newReferenceGame(seed, &w, faceOf(s.schema), 30)
	o := &referenceTruth{}
	var ends []*end
	for i, cfg := range hostileLinks() {
		e := connect(s, seed+uint64(i), cfg, WithSeed(seed+uint64(i)+1))
		if i%4 > 1 {
			e.peer.SetInterest(Interest{
				Visible: func(e ecs.Entity) bool { return (Tick(e.ID())+s.Tick()/40)%3 > 0 },
				Keep:    i%4 == 2,
			})
		}
		if i == 4 {
			e.peer.SetBudget(1500)
		}
		ends = append(ends, e)
	}
	for tick := range ticks {
		g.step()
		switch tick {
		case ticks / 4:
			ends[1].link.Up.SetConfig(netsim.Config{Loss: 1})
		case ticks / 3:
			w.Reset()
			g.entities, g.dead = nil, nil
		case ticks/4 + 600:
			ends[1].link.Up.SetConfig(netsim.Config{Latency: 3})
		}
		tickReferences(t, s, o, ends)
	}
	for _, e := range ends {
		e.peer.SetInterest(Interest{})
		e.peer.SetBudget(0)
	}
	requireReferencesSettle(t, s, o, ends, 400)
	for i, e := range ends {
		t.Logf("link %d: %+v", i, e.peer.Stats())
	}
}

// referringWire is a session in which the client holds references and relations of all kinds.
// packets gets all packets from the server.
func referringWire(t testing.TB, packets func(p []byte)) *fixture {
	x := newWire(t, referenceSchema(), WithMTU(300))
	g := newReferenceGame(5, x.world, faceOf(x.server.schema), 12)
	for range 30 {
		g.step()
		down := x.replicate()
		x.deliver(down...)
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
		for _, p := range down {
			packets(p)
		}
	}
	return x
}

// FuzzReferences is [FuzzPacket] for entities that reference each other.
func FuzzReferences(f *testing.F) {
	referringWire(f, func(p []byte) {
		if len(p) > 12 {
			f.Add(p[4]>>wire.PadShift&7, p[11:])
		}
	})
	f.Fuzz(func(t *testing.T, pad byte, body []byte) {
		x := referringWire(t, func([]byte) {})
		x.receiveForged(pad, body)
		x.rounds(3)
	})
}
