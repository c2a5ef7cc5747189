package replication

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// The world of the scale benchmarks: entities of four components with eight fields, a fixed share
// of which moves. Component sets never change, so every tick costs the same.

type scalePosition struct {
	X, Y, Z float32 `repl:"range=-1000:1000,step=0.01"`
}

type scaleVelocity struct {
	X, Y, Z float32 `repl:"range=-50:50,step=0.1"`
}

type scaleHealth struct {
	HP int `repl:"range=0:100"`
}

type scaleGrounded struct {
	On bool
}

func scaleSchema() *Schema {
	s := NewSchema()
	Register[scalePosition](s, Name("Position"))
	Register[scaleVelocity](s, Name("Velocity"))
	Register[scaleHealth](s, Name("Health"))
	Register[scaleGrounded](s, Name("Grounded"))
	return s
}

const (
	scaleRate   = 60  // ticks in a second of the world
	scaleMoving = 120 // ticks that an entity moves before it stops, on average
	scaleTurn   = 20  // ticks between changes of a mover's velocity, on average
)

// scaleLoad is the size of a world and the number of changes in it.
type scaleLoad struct {
	entities int
	movers   int // entities that move: changing ones, but always as many
	hits     int // entities whose health changes in a tick
}

// scaleGame is a lively game: in a tick 30 % move and 0.5 % are hit.
func scaleGame(entities int) scaleLoad {
	return scaleLoad{entities: entities, movers: entities * 3 / 10, hits: entities / 200}
}

// scaleSeed returns the seed of a benchmark and logs it: 1, or that of REPLICATION_SEED.
func scaleSeed(tb testing.TB) uint64 {
	tb.Helper()
	seed := uint64(1)
	if env := os.Getenv("REPLICATION_SEED"); env != "" {
		var err error
		seed, err = strconv.ParseUint(env, 10, 64)
		require.NoError(tb, err)
	}
	tb.Logf("REPLICATION_SEED=%d", seed)
	return seed
}

type scaleWorld struct {
	ecs   ecs.World
	load  scaleLoad
	rng   *rand.Rand
	parts []scaleParts
	order []int // of the entities: the moving ones first
}

// scaleParts are the components of an entity in Arche's memory. They stay there as long as no
// entity is added or removed.
type scaleParts struct {
	position *scalePosition
	velocity *scaleVelocity
	health   *scaleHealth
	grounded *scaleGrounded
}

func newScaleWorld(load scaleLoad, seed uint64) *scaleWorld {
	g := &scaleWorld{ecs: ecs.NewWorld(), load: load, rng: rand.New(rand.NewPCG(seed, 1))}
	w := &g.ecs
	position, velocity := ecs.ComponentID[scalePosition](w), ecs.ComponentID[scaleVelocity](w)
	health, grounded := ecs.ComponentID[scaleHealth](w), ecs.ComponentID[scaleGrounded](w)
	entities := make([]ecs.Entity, load.entities)
	for i := range entities {
		entities[i] = w.NewEntity(position, velocity, health, grounded, ReplicatedID(w))
	}
	for _, e := range entities {
		p := scaleParts{
			(*scalePosition)(w.Get(e, position)), (*scaleVelocity)(w.Get(e, velocity)),
			(*scaleHealth)(w.Get(e, health)), (*scaleGrounded)(w.Get(e, grounded)),
		}
		*p.position = scalePosition{g.upTo(1000), g.upTo(1000), g.upTo(1000)}
		p.health.HP, p.grounded.On = 100, true
		g.parts = append(g.parts, p)
	}
	g.order = g.rng.Perm(load.entities)
	for _, i := range g.order[:load.movers] {
		g.start(i)
	}
	return g
}

// sortByCell assigns the positions again, so that entities are in the order of the cells that they
// are in. It must be called before anything is replicated.
func (g *scaleWorld) sortByCell(side float32) {
	places := make([]scalePosition, len(g.parts))
	for i, p := range g.parts {
		places[i] = *p.position
	}
	cell := func(v float32) int { return int((v + 1000) / side) }
	slices.SortFunc(places, func(a, b scalePosition) int {
		return cmp.Or(cmp.Compare(cell(a.X), cell(b.X)), cmp.Compare(cell(a.Y), cell(b.Y)))
	})
	for i, p := range g.parts {
		*p.position = places[i]
	}
}

// upTo returns a number between -limit and limit.
func (g *scaleWorld) upTo(limit float32) float32 { return (2*g.rng.Float32() - 1) * limit }

func (g *scaleWorld) start(i int) {
	*g.parts[i].velocity = scaleVelocity{g.upTo(20), g.upTo(20), g.upTo(20)}
}

func (g *scaleWorld) stop(i int) {
	*g.parts[i].velocity = scaleVelocity{}
	g.parts[i].grounded.On = true
}

// step plays a tick.
func (g *scaleWorld) step() {
	moving, resting := g.order[:g.load.movers], g.order[g.load.movers:]
	for i, entity := range moving {
		if len(resting) > 0 && g.rng.IntN(scaleMoving) == 0 {
			other := &resting[g.rng.IntN(len(resting))]
			g.stop(entity)
			g.start(*other)
			moving[i], *other = *other, entity
			continue
		}
		p, v := g.parts[entity].position, g.parts[entity].velocity
		if g.rng.IntN(scaleTurn) == 0 {
			v.X, v.Y, v.Z = g.turn(v.X), g.turn(v.Y), g.turn(v.Z)
			if g.rng.IntN(4) == 0 {
				g.parts[entity].grounded.On = !g.parts[entity].grounded.On
			}
		}
		drift(&p.X, &v.X)
		drift(&p.Y, &v.Y)
		drift(&p.Z, &v.Z)
	}
	for range g.load.hits {
		g.parts[g.rng.IntN(len(g.parts))].health.HP = g.rng.IntN(101)
	}
}

// turn changes a velocity a little.
func (g *scaleWorld) turn(v float32) float32 { return min(max(v+g.upTo(2), -50), 50) }

// drift integrates a position, which bounces off the ends of its range.
func drift(p, v *float32) {
	*p += *v / scaleRate
	if *p < -1000 || *p > 1000 {
		*p = min(max(*p, -1000), 1000)
		*v = -*v
	}
}

// A fakeLink loses packets or delivers them some ticks after they were sent, in order, and records
// which arrived, for acks.
type fakeLink struct {
	delay   int     // ticks from a packet to its ack
	jitter  int     // greatest additional delay
	loss    float64 // share of packets that are lost
	ackLoss float64 // share of acks that are lost
	rng     *rand.Rand

	packets, bytes uint64
	next           uint32                // sequence of the next packet
	seen           uint32                // of the next packet to arrive
	ends           [16]uint32            // next after each tick, by tick modulo 16
	came           [wire.WindowSize]bool // received packets, by sequence modulo wire.WindowSize
	ackedUpTo      [2]uint32             // newest sequences in the last two acks
	deliver        func(sent []byte)     // if set, gets the packets when they arrive
	kept           map[uint32][]byte     // for deliver
}

// newFakeLink returns a link for packets from a given sequence on.
func newFakeLink(first uint32, seed uint64, delay int, loss float64) fakeLink {
	l := fakeLink{delay: delay, loss: loss, rng: rand.New(rand.NewPCG(seed, 2)), next: first, seen: first, kept: map[uint32][]byte{}}
	for i := range l.ends {
		l.ends[i] = first
	}
	l.ackedUpTo = [2]uint32{first - 1, first - 1}
	return l
}

// carry takes a packet, whose sequence is one above that of the previous packet.
func (l *fakeLink) carry(packet []byte) {
	if l.deliver != nil {
		l.kept[l.next] = bytes.Clone(packet)
	}
	l.next++
	l.packets++
	l.bytes += uint64(len(packet))
}

// arrive delivers packets and returns what to acknowledge before a tick: the newest sequence that
// arrived, and how many sequences from there down to include. Like a [Client] it repeats the
// contents of the last two acks. If nothing arrived, count is 0.
func (l *fakeLink) arrive(tick int) (newest, count uint32) {
	l.ends[(tick-1)&15] = l.next
	newest = l.ackedUpTo[0]
	delay := l.delay
	if l.jitter > 0 {
		delay += l.rng.IntN(l.jitter + 1)
	}
	for s := l.seen; int32(l.ends[(tick-delay)&15]-s) > 0; s++ {
		l.seen = s + 1
		l.came[s%wire.WindowSize] = l.loss == 0 || l.rng.Float64() >= l.loss
		if l.came[s%wire.WindowSize] {
			newest = s
			if l.deliver != nil {
				l.deliver(l.kept[s])
			}
		}
		delete(l.kept, s)
	}
	if newest == l.ackedUpTo[0] {
		return newest, 0
	}
	count = newest - l.ackedUpTo[1]
	l.ackedUpTo = [2]uint32{newest, l.ackedUpTo[0]}
	return newest, count
}

// A fakeClient acknowledges every packet that its link delivers, and decodes none: the server can't
// distinguish it from a real client, and it costs nothing.
type fakeClient struct {
	fakeLink
	peer    *Peer
	welcome []byte
	up      wire.Key
	out     [256]byte
}

// connectFake connects a fake client. It knows the format of the handshake and of acks, and that
// the sequences of state packets rise by one.
func connectFake(tb testing.TB, s *Server, nonce uint64, delay int, loss float64, opts ...PeerOption) *fakeClient {
	f := &fakeClient{}
	f.peer = s.Connect(f.take, opts...)
	h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: s.schema.Hash(), Nonce: nonce, Codings: wire.TakesCompact}
	require.NoError(tb, f.peer.Receive(wire.WithChecksum(h.Append(nil))))
	var m wire.Welcome
	require.True(tb, m.Parse(wire.OpenHandshake(f.welcome)))
	f.up = wire.SessionKey(s.schema.Hash(), m.Session, true, m.NoChecksum)
	f.fakeLink = newFakeLink(m.Sequence, nonce, delay, loss)
	require.NoError(tb, f.peer.Receive(f.pack(&wire.Ack{})))
	require.True(tb, f.peer.Connected())
	return f
}

// take is the peer's send function.
func (f *fakeClient) take(packet []byte) error {
	if f.welcome == nil {
		f.welcome = bytes.Clone(packet)
		return nil
	}
	f.carry(packet)
	return nil
}

// answer returns the ack packet that arrives before a tick, or nil. It is valid until the next
// call.
func (f *fakeClient) answer(tick int) []byte {
	newest, count := f.arrive(tick)
	if count == 0 || f.ackLoss > 0 && f.rng.Float64() < f.ackLoss {
		return nil
	}
	a := wire.Ack{Sequence: newest}
	a.Count = int(min((count+63)/32, wire.MaxAckWords))
	for i := range uint32(a.Count * 32) {
		if f.came[(newest-i)%wire.WindowSize] {
			a.Words[i/32] |= 1 << (i % 32)
		}
	}
	return f.pack(&a)
}

func (f *fakeClient) pack(a *wire.Ack) []byte {
	from := f.up.Size()
	w := bitbuf.NewWriter(f.out[from:])
	a.Write(&w)
	packet := f.out[:from+len(w.Bytes())]
	f.up.Write(packet, 0, 0)
	return packet
}

// A scaleRig is a world, its server and clients, with or without the library.
type scaleRig interface {
	// tick plays a tick and returns what it cost the server.
	tick() time.Duration
	// sent returns the bytes sent to all clients so far.
	sent() uint64
}

// sharedRig runs the library. Its clients have delays of 5 to 9 ticks.
type sharedRig struct {
	world  *scaleWorld
	server *Server
	fakes  []*fakeClient
	acks   [][]byte // by client
	ticks  int
	cpu    time.Duration // used by the server so far
}

// newSharedRig returns a rig in which all entities have been sent to all clients.
func newSharedRig(tb testing.TB, load scaleLoad, clients int, loss float64, seed uint64, opts ...ServerOption) *sharedRig {
	r := &sharedRig{world: newScaleWorld(load, seed), ticks: 16}
	r.server = NewServer(&r.world.ecs, scaleSchema(), append(opts, WithSeed(seed))...)
	r.connect(tb, clients, loss)
	return r
}

// connect adds clients.
func (r *sharedRig) connect(tb testing.TB, clients int, loss float64) {
	for range clients {
		i := len(r.fakes)
		r.fakes = append(r.fakes, connectFake(tb, r.server, uint64(i)+1, 5+i%5, loss))
		r.acks = append(r.acks, nil)
	}
}

func (r *sharedRig) tick() time.Duration {
	r.world.step()
	r.ticks++
	for i, f := range r.fakes {
		r.acks[i] = f.answer(r.ticks)
	}
	begin, used := time.Now(), cpuTime()
	for i, packet := range r.acks {
		if packet != nil {
			_ = r.fakes[i].peer.Receive(packet) // refused acks are counted and checked
		}
	}
	r.server.Replicate()
	r.cpu += cpuTime() - used
	return time.Since(begin)
}

func (r *sharedRig) used() time.Duration { return r.cpu }

func (r *sharedRig) sent() (n uint64) {
	for _, f := range r.fakes {
		n += f.bytes
	}
	return n
}

// check verifies that the server accepted the acks.
func (r *sharedRig) check(tb testing.TB) {
	tb.Helper()
	require.Zero(tb, r.server.Stats().Clamped)
	for _, f := range r.fakes {
		s := f.peer.Stats()
		require.Zero(tb, s.RefusedAcks+s.RefusedPackets+s.MissingBaselines+s.SendErrors)
		if s.Packets > 0 {
			require.NotZero(tb, s.Acked)
		}
		if f.loss == 0 {
			require.Zero(tb, s.Lost)
		}
	}
}

// TestScaleWorldKeepsItsLoad: as many entities move and are hit as the benchmarks state.
func TestScaleWorldKeepsItsLoad(t *testing.T) {
	g := newScaleWorld(scaleGame(2000), seedOf(t))
	moved := map[int]bool{}
	for range 60 {
		before := make([]scalePosition, len(g.parts))
		for i, p := range g.parts {
			before[i] = *p.position
		}
		g.step()
		n := 0
		for i, p := range g.parts {
			if *p.position != before[i] {
				n++
				moved[i] = true
			}
		}
		require.InDelta(t, 600, n, 30)
	}
	require.InDelta(t, 600+600*60/scaleMoving, len(moved), 150)
}

// TestFakeClientsPassForRealOnes: a real client that gets the packets acknowledged by a fake one
// can read every packet and follows the server's world.
func TestFakeClientsPassForRealOnes(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		r := newSharedRig(t, scaleGame(400), 5, loss, seedOf(t))
		var ends []*end
		for i, f := range r.fakes {
			w := ecs.NewWorld()
			c := NewClientWith(&w, scaleSchema(), func([]byte) error { return nil }, WithSeed(uint64(i)+1))
			require.NoError(t, c.Apply()) // its hello is that of the fake client
			require.NoError(t, c.Receive(f.welcome))
			f.deliver = func(packet []byte) { require.NoError(t, c.Receive(packet)) }
			ends = append(ends, &end{world: &w, client: c})
		}
		tick := func() {
			r.tick()
			for _, e := range ends {
				require.NoError(t, e.client.Apply())
			}
		}
		for range 100 {
			tick()
		}
		r.world.load = scaleLoad{}
		for range 60 {
			tick()
		}
		r.check(t)
		o := newTruth()
		o.record(r.server)
		for i, e := range ends {
			require.Empty(t, e.equalTo(r.server, o), "client %d, loss %v", i, loss)
			s := r.fakes[i].peer.Stats()
			if loss == 0 {
				// New entities are sent in full until they are acknowledged.
				require.LessOrEqual(t, s.FullStates, uint64(400+9*(120+2+9*2)))
			}
			require.Greater(t, s.Updates, uint64(70*120))
		}
	}
}
