package message

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// stampedInputs are both ends of a client's inputs, with packets that are lost and come late, in either direction.
type stampedInputs struct {
	t      testing.TB
	rng    *rand.Rand
	client clientInputs
	server inputRing
	now    delta.Tick
	loss   float64
	delay  int
	up     []inputPacket
	down   []reportPacket

	packets, referring, unread int
}

type inputPacket struct {
	at        delta.Tick
	rows      []inputRow
	stamped   bool
	reference wire.Delays
}

type reportPacket struct {
	at     delta.Tick
	report inputReport
	n      uint32
}

func newStampedInputs(t testing.TB, rng *rand.Rand, first delta.Tick) *stampedInputs {
	x := &stampedInputs{t: t, rng: rng, now: first, loss: rng.Float64() * 0.5, delay: 1 + rng.IntN(10)}
	x.client.ring = makeInputRows(inputRingTicks, 1)
	return x
}

func (x *stampedInputs) arrival() (at delta.Tick, lost bool) {
	return x.now + delta.Tick(x.delay/2+x.rng.IntN(x.delay)), x.rng.Float64() < x.loss
}

// tick plays a tick of both ends. Most ticks have an input, and most inputs have a stamp.
func (x *stampedInputs) tick() {
	x.now++
	if x.rng.IntN(20) > 0 {
		shown := wire.Stamp{Tick: x.now - 5, Part: uint8(x.rng.IntN(64)), Precision: 6, Valid: x.rng.IntN(200) > 0}
		x.client.Add(x.now+delta.Tick(x.delay), shown)
	}
	x.client.acknowledge(x.now)
	if rows := x.client.unacknowledged(); len(rows) > 0 {
		p := inputPacket{rows: slices.Clone(rows)}
		if p.stamped = x.client.stamped(rows); p.stamped {
			p.reference = x.client.reference(rows)
		}
		var lost bool
		if p.at, lost = x.arrival(); !lost {
			x.up = append(x.up, p)
		}
	}
	x.up = slices.DeleteFunc(x.up, func(p inputPacket) bool {
		if p.at == x.now {
			x.receive(&p)
		}
		return p.at == x.now
	})
	x.server.endTick(x.now)
	_, _, judged := x.server.worst(x.now)
	r := reportPacket{report: inputReport{x.now, x.server.late, judged}, n: x.server.gathered(x.now)}
	var lost bool
	if r.at, lost = x.arrival(); !lost {
		x.down = append(x.down, r)
	}
	x.down = slices.DeleteFunc(x.down, func(r reportPacket) bool {
		if r.at == x.now {
			x.client.reported(r.report, r.n)
			x.client.acknowledge(r.report.tick + delta.Tick(r.n))
		}
		return r.at == x.now
	})
}

// receive is the server's way with a packet: see parseInputs.
func (x *stampedInputs) receive(p *inputPacket) {
	var d wire.Delays
	readable := !p.stamped || !p.reference.Any() || x.server.reference(&d, p.rows[0].tick, len(p.rows))
	x.packets++
	if p.reference.Any() {
		x.referring++
		if readable {
			require.Equal(x.t, p.reference, d)
		} else {
			x.unread++
		}
	}
	for i := range p.rows {
		in := p.rows[i]
		in.known, in.bare = false, !readable
		if !p.stamped || !readable {
			in.stamp = wire.Stamp{}
		}
		x.server.take(&in, x.now)
	}
}

// TestStampsReferToWhatTheServerHas plays inputs over networks that lose up to half of the packets.
func TestStampsReferToWhatTheServerHas(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	referring, packets := 0, 0
	for range 200 {
		x := newStampedInputs(t, rng, delta.Tick(rng.Uint32()))
		for range 300 {
			x.tick()
		}
		require.Zero(t, x.unread, "loss %.2f, delay %d", x.loss, x.delay)
		referring, packets = referring+x.referring, packets+x.packets
	}
	t.Logf("%d of %d packets refer to stamps", referring, packets)
	require.Greater(t, referring*5, packets)
}

// TestStampsAfterAServerForgot: if the server lacks what stamps refer to, the client learns it, and the inputs that lost
// their stamps are not referred to.
func TestStampsAfterAServerForgot(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	forgot, referring, packets := 0, 0, 0
	for range 200 {
		x := newStampedInputs(t, rng, delta.Tick(rng.Uint32()))
		x.loss, x.delay = 0, 1+rng.IntN(6)
		for range 60 {
			x.tick()
		}
		for i := range x.server.known {
			x.server.known[i] = false
		}
		for range 40 {
			x.tick()
		}
		forgot += x.unread
		x.unread, x.referring, x.packets = 0, 0, 0
		for range 60 {
			x.tick()
		}
		require.Zero(t, x.unread)
		referring, packets = referring+x.referring, packets+x.packets
	}
	require.Greater(t, referring*2, packets)
	require.Positive(t, forgot, "or the test proves nothing")
}
