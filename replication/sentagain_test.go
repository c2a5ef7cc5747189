package replication

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// sentAgain is the slow twin of ackTable.sentAfter: it looks whether a packet after the given one carried something of a slot.
func (l *sentLog) sentAgain(after uint32, slot int) bool {
	for q := after + 1; q != l.next; q++ {
		p := l.at(q)
		for i := range p.count {
			r := l.record(p, i)
			if r.block == uint32(slot>>6) && r.mask>>(slot&63)&1 != 0 {
				return true
			}
		}
	}
	return false
}

// TestWhereStatesWereSentAgainIsKnown compares what is remembered of states that were sent more than once with what the packets
// carried, over bad links.
func TestWhereStatesWereSentAgainIsKnown(t *testing.T) {
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed), WithMTU(300))
	g := newGame(seed, &w, s.schema, 150)
	o := newTruth()
	group := s.NewGroup()
	var ends []*end
	for i, cfg := range hostileLinks() {
		ends = append(ends, connect(s, seed+uint64(i), cfg, WithNonce(seed+uint64(i)+1)))
	}
	ends = append(ends, connect(s, seed+50, netsim.Config{Latency: 5, Loss: 0.7}, WithNonce(seed+60)))
	var later, last int
	for tick := range 1000 {
		if tick%100 < 30 {
			g.step() // and then it rests, and much is sent again
		}
		if e := g.entities; tick%10 == 0 && len(e) > 3 && group.Len() < 3 {
			group.Add(e[len(e)-1])
		}
		s.Replicate()
		o.record(s)
		for _, e := range ends {
			p := e.peer
			for q := p.log.next - uint32(len(p.log.ring)); q != p.log.next; q++ {
				sent := p.log.find(q)
				if sent == nil {
					continue
				}
				for i := range sent.count {
					r := p.log.record(sent, i)
					b := int(r.block)
					if r.kind != recordState {
						continue
					}
					mask := r.mask & p.acks.rare(b).again &^ p.inStep(b)
					mask &^= s.slots.bornAfter(sent.tick, b, mask)
					mask &^= s.slots.changedAfter(sent.tick, b, mask)
					got := p.acks.sentAfter(b, mask, q)
					for slot := range slotsOf(b, mask) {
						want := p.log.sentAgain(q, slot)
						require.Equal(t, want, got>>(slot&63)&1 != 0, "tick %d, packet %d, slot %d", tick, q, slot)
						if want {
							later++
						} else {
							last++
						}
					}
				}
			}
			e.step(t)
		}
	}
	require.Greater(t, later, 1000)
	require.Greater(t, last, 1000)
}

// TestAcksOfWhatWasSentAgainAreCheap: a client that lets all be sent to it again and again, and then acknowledges it one packet at
// a time, does not make its acks dear: they don't cost more the more is on its way.
func TestAcksOfWhatWasSentAgainAreCheap(t *testing.T) {
	x := connectedWire(t, testSchema(), WithWindow(120), neverSilent)
	position := ecs.ComponentID[tPosition](x.world)
	var moving []ecs.Entity
	for i := range 10_000 {
		if e := x.spawn(position); i%150 == 0 { // some in most blocks
			moving = append(moving, e)
		}
	}
	for i := range 400 {
		for j, e := range moving {
			(*tPosition)(x.world.Get(e, position)).X = float32((i + j) % 100)
		}
		x.server.Replicate()
	}
	p := x.peer
	again := 0
	var times []time.Duration // one by one, as one that is interrupted says nothing
	for q := p.log.next - uint32(len(p.log.ring)); q != p.log.next; q++ {
		if sent := p.log.find(q); sent != nil {
			for i := range sent.count {
				r := p.log.record(sent, i)
				again += bits.OnesCount64(r.mask & p.acks.rare(int(r.block)).again)
			}
			start := time.Now()
			p.acknowledge(sent, q)
			p.arriveAll()
			times = append(times, time.Since(start))
		}
	}
	require.Greater(t, len(times), 50)
	require.Greater(t, again, 5000)
	slices.Sort(times)
	each := times[len(times)/2]
	t.Logf("%d packets with %d states that were sent again, %v for each", len(times), again, each)
	require.Less(t, each, 50*time.Microsecond, "it was 75 when all packets were looked through for each state")
}
