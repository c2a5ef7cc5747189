package message

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
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
	ahead  int  // of inputs, in ticks
	pause  bool // there are no inputs
	deaf   bool // there are no reports
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
	x.ahead = x.delay
	x.client.ring = makeInputRows(inputRingTicks, 1)
	return x
}

func (x *stampedInputs) arrival() (at delta.Tick, lost bool) {
	return x.now + delta.Tick(x.delay/2+x.rng.IntN(x.delay)), x.rng.Float64() < x.loss
}

// tick plays a tick of both ends. Most ticks have an input, and most inputs have a stamp.
func (x *stampedInputs) tick() {
	x.now++
	if tick := x.now + delta.Tick(x.ahead); !x.pause && x.rng.IntN(20) > 0 && !x.client.Set(tick) {
		shown := wire.Stamp{Tick: x.now - 5, Part: uint8(x.rng.IntN(64)), Precision: 6, Valid: x.rng.IntN(200) > 0}
		x.client.Add(tick, shown)
	}
	x.client.acknowledge(x.now - 1) // the ticks that are over
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
	if r.at, lost = x.arrival(); !lost && !x.deaf {
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

// TestStampsOfManyInputs: packets of up to 31 inputs refer to stamps.
func TestStampsOfManyInputs(t *testing.T) {
	for n := 2; n < maxRepeated; n++ {
		x := newStampedInputs(t, rand.New(rand.NewPCG(replicationtest.Seed(t), 1)), ^delta.Tick(100))
		for i := range 200 {
			tick := delta.Tick(i) - 100
			x.client.Add(tick, wire.Stamp{Tick: tick - 5, Precision: 6, Valid: true})
			x.client.reported(inputReport{tick: tick - delta.Tick(n)}, 0)
			x.client.acknowledge(tick - delta.Tick(n))
			x.client.reported(inputReport{tick: tick - delta.Tick(n) - 1}, 1)
			rows := x.client.unacknowledged()
			if i < 100 {
				continue
			}
			require.Len(t, rows, n)
			require.True(t, x.client.stamped(rows))
			d := x.client.reference(rows)
			require.True(t, d.Any(), "%d inputs", n)
		}
	}
}

// TestStampsAfterAStepBack: a client that gives inputs again for ticks for which the server has others does not refer to
// their stamps.
func TestStampsAfterAStepBack(t *testing.T) {
	replicationtest.OneGoroutine(t)
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	referring, packets := 0, 0
	for range 200 {
		x := newStampedInputs(t, rng, delta.Tick(rng.Uint32()))
		x.loss = 0
		for range 4 {
			x.ahead = 80 + rng.IntN(16)
			for range 100 {
				x.tick()
			}
			x.ahead = x.delay
			for range 100 {
				x.tick() // receive compares what both ends refer to
			}
		}
		require.Zero(t, x.unread)
		x.referring, x.packets = 0, 0
		for range 100 {
			x.tick()
		}
		referring, packets = referring+x.referring, packets+x.packets
	}
	require.Greater(t, referring*2, packets)
}

// TestStampsAfterAPause: a client may pause for as long as a server waits for inputs, and the last report may be of any
// tick of that.
func TestStampsAfterAPause(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for pause := 1; pause < 60; pause++ {
		for got := range pause { // ticks of the pause in which reports come
			x := newStampedInputs(t, rand.New(rand.NewPCG(uint64(pause), uint64(got))), ^delta.Tick(60))
			x.loss, x.delay, x.ahead = 0, 1, 3
			for range 40 {
				x.tick()
			}
			x.pause = true
			for i := range pause {
				x.tick()
				x.deaf = i >= got
			}
			x.pause, x.deaf = false, false
			for range 40 {
				x.tick()
			}
			require.Zero(t, x.unread, "pause of %d ticks, reports in %d of them", pause, got)
		}
	}
}

// TestStampsAfterAReconnect: inputs of the session before are none of this one, though it may have the same ticks.
func TestStampsAfterAReconnect(t *testing.T) {
	replicationtest.OneGoroutine(t)
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	for range 200 {
		x := newStampedInputs(t, rng, delta.Tick(rng.Uint32()))
		for range 10 {
			for range 70 {
				x.tick()
			}
			x.client = clientInputs{ring: x.client.ring} // see ClientMessages.Reset
			x.server, x.up, x.down = inputRing{}, nil, nil
			x.now -= delta.Tick(rng.IntN(40)) // of another server
		}
		require.Zero(t, x.unread)
	}
}

// TestTruncatedInputsAreRefused: also if the server lacks the stamps that they refer to.
func TestTruncatedInputsAreRefused(t *testing.T) {
	r := bitbuf.NewReader([]byte{0, 0, 30}) // 31 ticks, and bits for 3 of them
	_, err := parseInputs(&r, nil, 0, nil, 0, make([]inputRow, maxRepeated), &inputRing{})
	require.Error(t, err)
}
