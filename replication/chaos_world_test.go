package replication

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
)

// A chaosGame plays any order of events that a game and a network can produce: packets are delayed,
// lost, duplicated and reordered; peers join, reconnect and get limits for a while; entities pause
// for every length at which the server's records change. In every tick the server's tables are
// checked against each other.

type chaosPacket struct {
	arrives int
	bytes   []byte
}

type chaosLink struct {
	delay, jitter, upDelay, upJitter int
	loss, upLoss, dup, sendErr       float64
	burst                            int // ticks of total loss left (down)
	upBurst                          int
	hiccup                           float64
	down, up                         []chaosPacket
}

type chaosEnd struct {
	name string
	*end
	l   chaosLink
	log [][]byte
	rng *rand.Rand
}

type chaosGame struct {
	t      testing.TB
	cfg    chaosConfig
	rng    *rand.Rand
	grids  *rand.Rand // of steps between base ticks
	world  *ecs.World
	server *Server
	truth  *truth
	ends   []*chaosEnd
	now    int
	ents   []chaosEntity
	ids    []ecs.ID
	marker ecs.ID
	nonce  uint64
	set    *EntitySet

	bonds      []*Group
	armed      bool // user callbacks may panic
	unfinished bool // the tick panicked before its end
	panicked   int
	settled    *settledOracle // nil: settled ticks are not checked
}

type chaosEntity struct {
	e    ecs.Entity
	live bool
	mode int
	wait int
	vx   float32
}

type chaosConfig struct {
	seed          uint64
	n             int
	mtu           int
	window        int
	grid          int // 0: it changes at random in every tick
	workers       int
	ends          int
	delay         int
	jitter        int
	loss          float64
	toggles       bool
	reconnect     bool
	structure     bool
	bulk          bool
	sendErr       float64
	ticks         int
	firstTick     uint32
	firstSeq      uint16
	keepLog       bool
	restOnly      bool
	burst         bool
	dup           float64
	bigRests      bool
	sharedPackets bool
	apart         int // changes in a tick with which packets apart are sent, 0: the default
	joins         int // work of joining in a tick, 0: the default
	wild          *wildConfig
	settled       bool // settled ticks are checked
	interval      int  // the send interval of all peers, 0: it may change
	views         bool // every peer that may be sent complete packet sets has a filter
}

var chaosRests = []int{1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 19, 20, 21, 22, 24, 28, 31, 32, 33, 34, 40, 47, 63, 64, 65, 66}

func pick[T any](r *rand.Rand, x ...T) T { return replicationtest.Pick(r, x...) }

func randomChaosConfig(seed uint64) chaosConfig {
	r := rand.New(rand.NewPCG(seed, 77))
	c := chaosConfig{seed: seed}
	c.n = pick(r, 1, 5, 20, 70, 70, 130, 600)
	c.mtu = pick(r, 64, 128, 128, 300, 1200)
	c.window = pick(r, 8, 16, 20, 31, 32, 33, 40, 64, 64, 64, 64, 100, 120)
	c.grid = pick(r, 1, 1, 2, 4, 8)
	c.workers = pick(r, 1, 1, 2, 3)
	c.ends = pick(r, 1, 2, 3, 5)
	maxDelay := c.window/2 - 2
	c.delay = min(pick(r, 0, 0, 1, 2, 3, 5, 8, 9, 10, 12, 15, 16, 17, 20, 30), maxDelay)
	c.jitter = min(pick(r, 0, 0, 1, 2, 4), maxDelay-c.delay)
	c.loss = pick(r, 0, 0, 0.01, 0.03, 0.1, 0.3)
	c.toggles = r.IntN(3) == 0
	c.reconnect = r.IntN(3) == 0
	c.structure = r.IntN(2) == 0
	c.bulk = r.IntN(4) == 0
	if r.IntN(4) == 0 {
		c.sendErr = pick(r, 0.01, 0.1, 0.5)
	}
	c.burst = r.IntN(3) == 0
	if r.IntN(3) == 0 {
		c.dup = 0.2
	}
	c.ticks = 400
	if c.n > 100 {
		c.ticks = 200
	}
	c.restOnly = r.IntN(3) == 0
	c.firstTick = pick(r, uint32(0), 0, 1<<32-100, 1<<31-100, 1<<16-100)
	c.firstSeq = pick(r, uint16(0), 1<<16-100)
	c.bigRests = r.IntN(2) == 0
	c.sharedPackets = r.IntN(3) > 0
	c.apart = pick(rand.New(rand.NewPCG(seed, 78)), 0, 1, 20)
	c.joins = pick(rand.New(rand.NewPCG(seed, 80)), 0, 0, 1000, 10_000)
	if r := rand.New(rand.NewPCG(seed, 79)); r.IntN(4) == 0 {
		c.grid = 0
	}
	return c
}

type chaosFailure struct{ msg string }

func (a *chaosGame) fail(format string, args ...any) {
	panic(chaosFailure{fmt.Sprintf(format, args...)})
}

func newChaosGame(t testing.TB, c chaosConfig) *chaosGame {
	a := &chaosGame{t: t, cfg: c, rng: rand.New(rand.NewPCG(c.seed, 5)), grids: rand.New(rand.NewPCG(c.seed, 6))}
	w := ecs.NewWorld()
	a.world = &w
	opts := []ServerOption{WithSeed(c.seed), WithMTU(c.mtu), WithWindow(c.window), WithWorkers(c.workers), replicationtest.FirstTick(c.firstTick), replicationtest.FirstSequence(c.firstSeq)}
	opts = append(opts, config.ServerFunc(func(o *config.ServerOptions) { o.NoSharedPackets = !c.sharedPackets }))
	if c.apart > 0 {
		opts = append(opts, config.ServerFunc(func(o *config.ServerOptions) { o.LeastApart = c.apart }))
	}
	if c.joins > 0 {
		opts = append(opts, config.ServerFunc(func(o *config.ServerOptions) { o.JoinWork = c.joins }))
	}
	if c.grid > 0 {
		opts = append(opts, WithBaselineInterval(c.grid))
	}
	a.server = NewServer(a.world, testSchema(), opts...)
	for i := range a.server.schema.Components {
		a.ids = append(a.ids, ecs.TypeID(a.world, a.server.schema.Components[i].Typ))
	}
	a.marker = ReplicatedID(a.world)
	a.truth = newTruth()
	if c.settled {
		a.settled = newSettledOracle(a.server)
	}
	a.set = a.server.NewEntitySet()
	a.ents = make([]chaosEntity, c.n)
	for i := range a.ents {
		a.spawn(i)
	}
	for range c.ends {
		a.join()
	}
	return a
}

var errRefused = errors.New("refused")

func (a *chaosGame) join() {
	a.nonce++
	e := &chaosEnd{rng: rand.New(rand.NewPCG(a.cfg.seed, 1000+a.nonce))}
	c := &a.cfg
	e.l = chaosLink{delay: c.delay, jitter: c.jitter, upDelay: c.delay, upJitter: c.jitter, loss: c.loss, upLoss: c.loss, dup: c.dup, sendErr: c.sendErr}
	if e.rng.IntN(4) == 0 && c.loss > 0 {
		e.l.upLoss = 0.5
	}
	if e.rng.IntN(4) == 0 {
		e.l.loss, e.l.upLoss, e.l.jitter, e.l.upJitter, e.l.dup, e.l.sendErr = 0, 0, 0, 0, 0, 0
	}
	if e.rng.IntN(3) == 0 && c.delay > 0 {
		e.l.delay = e.rng.IntN(c.delay)
		e.l.upDelay = e.rng.IntN(c.delay)
	}
	e.end = &end{}
	coding := Packed
	if c.wild != nil && (c.wild.coding == 2 || c.wild.coding == 1 && a.nonce%2 == 0) {
		coding = Compact
	}
	opts, mtu := []PeerOption{WithCoding(coding)}, c.mtu
	if own := rand.New(rand.NewPCG(a.cfg.seed, 1<<40+a.nonce)); own.IntN(3) == 0 {
		mtu = max(64, mtu/4) + own.IntN(2*mtu)
		opts = append(opts, WithMTU(mtu))
	}
	e.peer = a.server.Connect(func(p []byte) error {
		if len(p) > mtu {
			a.fail("a packet of %d bytes exceeds the peer's MTU of %d", len(p), mtu)
		}
		if a.armed && c.wild.panics && a.rng.IntN(200) == 0 {
			panic(wildPanic{})
		}
		if e.l.sendErr > 0 && e.rng.Float64() < e.l.sendErr {
			return errRefused
		}
		if c.keepLog {
			e.log = append(e.log, bytes.Clone(p))
		}
		if e.l.burst == 0 {
			e.l.down = e.carry(e.l.down, e.l.loss, a.now+e.l.delay, e.l.jitter, p)
		}
		return nil
	}, opts...)
	if c.interval > 0 {
		e.peer.SetSendInterval(c.interval)
	}
	if m := len(a.ends); c.views {
		e.peer.SetSendInterval(pick(e.rng, 1, 1, 2, 3, 8, 9))
		if e.peer.acked.Interval <= snapshot.MaxPeriod || m%2 == 0 || c.wild != nil {
			e.peer.SetInterest(Interest{Keep: m%2 == 0, Visible: func(e ecs.Entity) bool { return (int(e.ID())+a.now/64)%7 != m }})
		}
	}
	a.restart(e)
	a.ends = append(a.ends, e)
}

func (a *chaosGame) restart(e *chaosEnd) {
	a.nonce++
	w := ecs.NewWorld()
	e.world, e.last = &w, map[NetID]uint32{}
	e.client = NewClientWith(&w, faceOf(a.server.schema), func(p []byte) error {
		if e.l.upBurst == 0 {
			e.l.up = e.carry(e.l.up, e.l.upLoss, a.now+e.l.upDelay, e.l.upJitter, p)
		}
		return nil
	}, WithSeed(a.nonce*7919))
}

// carry queues a packet that is not lost, once or twice.
func (e *chaosEnd) carry(way []chaosPacket, loss float64, send, jitter int, packet []byte) []chaosPacket {
	if e.rng.Float64() < loss {
		return way
	}
	n := 1
	if e.rng.Float64() < e.l.dup {
		n = 2
	}
	for range n {
		way = append(way, chaosPacket{send + e.rng.IntN(jitter+1), bytes.Clone(packet)})
	}
	return way
}

func (a *chaosGame) spawn(i int) {
	r := a.rng
	ids := []ecs.ID{a.ids[0], a.marker}
	if r.IntN(3) == 0 {
		ids = append(ids, a.ids[2])
	}
	if a.cfg.bulk && r.IntN(8) == 0 {
		ids = append(ids, a.ids[5])
	}
	e := a.world.NewEntity(ids...)
	a.ents[i] = chaosEntity{e: e, live: true, mode: r.IntN(4), vx: r.Float32() - 0.5}
	if a.cfg.restOnly {
		a.ents[i].mode = 1
	}
	p := (*tPosition)(a.world.Get(e, a.ids[0]))
	p.X, p.Y = r.Float32()*200-100, r.Float32()*200-100
	if r.IntN(2) == 0 {
		a.set.Add(e)
	}
}

func (a *chaosGame) move(x *chaosEntity) {
	p := (*tPosition)(a.world.Get(x.e, a.ids[0]))
	r := a.rng
	switch r.IntN(12) {
	case 0:
		p.Z = float32(r.IntN(100))
	case 1:
		x.vx = r.Float32() - 0.5
		fallthrough
	default:
		p.X += x.vx
		if p.X > 100 || p.X < -100 {
			p.X = 0
		}
	}
	if a.world.Has(x.e, a.ids[2]) && r.IntN(5) == 0 {
		(*tHealth)(a.world.Get(x.e, a.ids[2])).HP = int16(r.IntN(100))
	}
	if a.world.Has(x.e, a.ids[5]) && r.IntN(3) == 0 {
		b := (*tBulk)(a.world.Get(x.e, a.ids[5]))
		switch r.IntN(3) {
		case 0:
			for i := range b.Cells {
				b.Cells[i] = r.Uint64()
			}
		case 1:
			b.Cells = [40]uint64{}
		default:
			b.Cells[r.IntN(40)]++
		}
	}
}

func (a *chaosGame) stepWorld() {
	r := a.rng
	for i := range a.ents {
		x := &a.ents[i]
		if !x.live {
			if r.IntN(6) == 0 || x.mode == 9 {
				a.spawn(i)
			}
			continue
		}
		if a.cfg.structure {
			k := r.IntN(60)
			if len(a.ents) > 100 {
				k = r.IntN(2000)
			}
			switch k {
			case 0, 1:
				a.world.RemoveEntity(x.e)
				x.live = false
				switch r.IntN(3) {
				case 0:
					a.spawn(i) // same tick: probably another slot
				case 1:
					x.mode = 9 // next tick
				default:
					x.mode = 0
				}
				continue
			case 2, 3:
				id := a.ids[2]
				if a.cfg.bulk && r.IntN(2) == 0 {
					id = a.ids[5]
				}
				if a.world.Has(x.e, id) {
					a.world.Remove(x.e, id)
				} else {
					a.world.Add(x.e, id)
				}
			case 4:
				if a.world.Has(x.e, a.marker) {
					a.world.Remove(x.e, a.marker)
				} else {
					a.world.Add(x.e, a.marker)
				}
			}
			if !a.world.Has(x.e, a.marker) && r.IntN(3) == 0 {
				a.world.Add(x.e, a.marker)
			}
		}
		switch x.mode {
		case 0: // always
			a.move(x)
		case 1: // moves in bursts
			if x.wait > 0 {
				x.wait--
				continue
			}
			a.move(x)
			if r.IntN(4) == 0 {
				x.wait = chaosRests[r.IntN(len(chaosRests))]
				if !a.cfg.bigRests {
					x.wait = chaosRests[r.IntN(20)]
				}
			}
		case 2: // at random
			if r.IntN(4) == 0 {
				a.move(x)
			}
		case 3: // rarely
			if r.IntN(40) == 0 {
				a.move(x)
			}
		}
		if r.IntN(200) == 0 && !a.cfg.restOnly {
			x.mode = r.IntN(4)
		}
	}
}

func (a *chaosGame) events() {
	c, r := &a.cfg, a.rng
	if c.wild != nil {
		a.wildEvents()
	}
	for _, e := range a.ends {
		if e.l.burst > 0 {
			e.l.burst--
		} else if c.burst && r.IntN(100) == 0 {
			e.l.burst = 1 + r.IntN(40)
		}
		if e.l.upBurst > 0 {
			e.l.upBurst--
		} else if c.burst && r.IntN(100) == 0 {
			e.l.upBurst = 1 + r.IntN(60)
		}
		if c.toggles && r.IntN(25) == 0 {
			k := r.IntN(8)
			p := e.peer
			switch k {
			case 0:
				p.SetBudget(pick(r, 500, 3000, 20000, 200000, 1000000))
			case 1:
				p.SetBudget(0)
			case 2:
				p.SetSendInterval(pick(r, 1, 2, 3, 7))
			case 3:
				p.SetSendInterval(1)
			case 4:
				m := r.IntN(4)
				p.SetInterest(Interest{Keep: r.IntN(2) == 0, Visible: func(e ecs.Entity) bool { return int(e.ID())%4 != m }})
			case 5:
				p.SetInterest(Interest{Keep: r.IntN(2) == 0, Sets: []*EntitySet{a.set}})
			default:
				p.SetInterest(a.everything())
				p.SetBudget(0)
				p.SetSendInterval(1)
			}
		}
		if c.reconnect && r.IntN(120) == 0 {
			a.restart(e)
		}
	}
	if c.reconnect && r.IntN(150) == 0 && len(a.ends) < 7 {
		a.join()
	}
}

func (e *chaosEnd) take(q *[]chaosPacket, now int, fn func(p []byte)) {
	old := *q
	var send []chaosPacket
	n := 0
	for _, p := range old {
		if p.arrives <= now {
			send = append(send, p)
		} else {
			old[n] = p
			n++
		}
	}
	*q = old[:n]
	if e.l.jitter > 0 && len(send) > 1 && e.rng.IntN(2) == 0 {
		e.rng.Shuffle(len(send), func(i, j int) { send[i], send[j] = send[j], send[i] })
	}
	for _, p := range send {
		fn(p.bytes)
	}
}

func (a *chaosGame) tick(world bool) {
	a.now++
	if world {
		a.stepWorld()
	}
	a.replicateWildly()
	a.truth.record(a.server)
	if a.settled != nil {
		a.settled.record()
	}
	a.invariants()
	for i, e := range a.ends {
		e.take(&e.l.down, a.now, func(p []byte) {
			_ = e.client.Receive(p)
			if a.settled == nil {
				return
			}
			if msg := a.settled.received(e.peer, e.client); msg != "" {
				a.fail("end %d: %s", i, msg)
			}
		})
		if len(e.client.recv.Missing) > 0 {
			m := e.client.recv.Missing[0]
			b, bit := int(m.Slot>>6), uint64(1)<<(m.Slot&63)
			t := &e.peer.acked.Acks
			a.fail("end %d: client lacks slot %d low %d (tick %d); none %v missing %v since %d; changed %d through %d recent %d; log %v", i, m.Slot, m.Low, e.client.recv.NearTick, t.None[b]&bit != 0, t.Lacks(t.Through, b)&bit != 0, t.Since[m.Slot], a.server.snap.Slots.ChangedAt[m.Slot], t.Through, e.peer.acked.Recent, a.logOf(int(m.Slot)))
		}
		if e.client.Apply() != nil {
			a.fail("apply")
		}
		e.take(&e.l.up, a.now, func(p []byte) { _ = e.peer.Receive(p) })
		a.check(i, e)
		if st := e.peer.Stats(); st.MissingBaselines > 0 {
			a.fail("end %d: missing baselines at peer %+v", i, st)
		}
	}
}
