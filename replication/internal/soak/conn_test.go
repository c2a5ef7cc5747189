package soak

import (
	"errors"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// A conn is a client with its world, its peer on the server, and the link between them.
type conn struct {
	ep   *episode
	host *host
	g    *chance

	peer  *replication.Peer
	link  *netsim.Link
	bad   netsim.Config
	far   bool // more packets may overtake a short header than it allows for, when the link changes as well
	clean bool // the link never damages packets
	spoil bool // packets are damaged, and foreign and old ones added
	opts  []replication.PeerOption
	mtu   int      // of packets to the client
	sums  bool     // packets have checksums
	old   [][]byte // earlier packets
	tap   func(packet []byte)

	world  *ecs.World
	client *replication.Client
	ids    []ecs.ID
	resIDs []ecs.ResID
	locals ecs.ID // the client's local component

	view     viewSettings
	twitchy  bool         // no budget or interval, and a view that changes often
	blinked  viewSettings // replaces view at other times
	blinks   int          // ticks until the next blink; 0: it does not blink
	shut     bool
	sights   map[replication.NetID]*timeline[sight]
	online   timeline[bool]
	since    uint32 // first tick whose state the client may have
	started  bool
	session  uint32 // tick in which the current session began
	begun    bool   // there was a session
	budget   int
	interval int
	every    int // Apply is called once in so many ticks
	messy    bool

	applies   int
	shown     map[replication.NetID]*showing
	hooked    map[ecs.Entity]bool // spawned and not despawned, according to hooks
	split     bool                // groups did not fit, or the user has removed members
	kept      bool                // the peer has or had Keep
	rejoined  bool                // entities of an earlier session may be shown
	resources uint32              // the earliest tick that the resources can be of
	had       bool                // resources were shown
	scratch   [][]cell
	expected  map[uint16]*expectation

	down      mailbox             // from the server
	up        map[uint64]*mailbox // to the server, by session of the client
	upSession uint64              // of the latest message that arrived there
	ended     *replication.Reason
	endedBy   string
	returning int // ticks until it reconnects
	inputs    map[uint32][]issued
	inTime    int
}

// join connects a client to a host. The world of a relay's client is replicated again.
func (ep *episode) join(h *host, relay bool) *conn {
	g := newChance(ep.seed, 1000+uint64(len(ep.conns)))
	world := ecs.NewWorld()
	c := &conn{
		ep: ep, host: h, g: g, world: &world, every: 1, interval: 1, messy: !relay && g.one(3), spoil: h.checksums && g.one(3),
		sights: map[replication.NetID]*timeline[sight]{}, shown: map[replication.NetID]*showing{}, hooked: map[ecs.Entity]bool{},
		expected: map[uint16]*expectation{}, inputs: map[uint32][]issued{},
		split: len(h.groups) == 0, mtu: h.mtu, sums: h.checksums,
	}
	ecs.ComponentID[localThing](c.world) // makes IDs differ from those of the server
	c.locals = ecs.ComponentID[localThing](c.world)
	c.ids, c.resIDs = idsOf(c.world, h.plan, true)
	for _, p := range h.plan.components {
		c.scratch = append(c.scratch, make([]cell, p.cells))
	}
	c.clean = !c.spoil
	c.bad = weather(g, c.spoil)
	c.far = c.bad.Latency+c.bad.Jitter+float64(c.bad.ReorderBy) > 12
	if g.one(4) {
		c.opts = append(c.opts, replication.WithCoding(replication.Compact))
	}
	if g.one(4) { // as with several transports
		c.mtu = pick(g, 180, h.mtu-2, 600, 3000, 16_384)
		c.opts = append(c.opts, replication.WithMTU(c.mtu))
	}
	if !c.spoil && g.one(6) {
		c.sums = false
		c.opts = append(c.opts, replication.WithoutChecksum())
	}
	if g.one(4) {
		c.every = 2 + g.IntN(3)
	}
	opts := []replication.ClientOption{replication.WithSeed(g.Uint64()), replication.WithTimeout(time.Duration(pick(g, 100, 150, 600)) * time.Second / 60)}
	if g.one(8) {
		opts = append(opts, replication.WithoutCompact())
	}
	if g.one(4) {
		opts = append(opts, replication.WithMTU(256))
	}
	if relay {
		opts = append(opts, replication.WithSpawnComponents(ecs.ComponentID[replication.Replicated](c.world)))
	}
	schema := h.plan.schema(true, nil)
	if g.one(2) && h.plan.same() {
		schema = h.schema
	}
	c.link = netsim.NewLink(g.Uint64(), c.bad)
	c.client = replication.NewClient(c.world, schema, opts...)
	c.client.SetSend(func(packet []byte) error { return c.link.Up.Send(packet) })
	replication.OnSpawn(c.client, func(e ecs.Entity) {
		if c.hooked[e] {
			ep.fail("OnSpawn twice")
		}
		c.hooked[e] = true
	})
	replication.OnDespawn(c.client, func(e ecs.Entity) {
		if !c.hooked[e] || !c.world.Alive(e) {
			ep.fail("OnDespawn of what was not spawned, or is gone")
		}
		delete(c.hooked, e)
	})
	c.takeNotes()
	h.conns = append(h.conns, c)
	ep.conns = append(ep.conns, c)
	c.view.veil, c.blinked.veil = -1, -1
	if c.twitchy = g.one(3); c.twitchy || g.one(2) {
		c.open()
	}
	if c.twitchy && g.one(2) {
		c.blinks, c.blinked, c.view = 20, c.view, viewSettings{veil: -1, keep: !g.one(4)}
		c.kept = c.view.keep
	}
	c.attach()
	return c
}

// attach gives the client a peer.
func (c *conn) attach() {
	if c.peer != nil && !c.sums { // a new peer needs a connection of its own
		c.link = netsim.NewLink(c.g.Uint64(), c.bad)
	}
	link := c.link
	c.peer = c.host.server.Connect(func(packet []byte) error {
		if len(packet) > c.mtu {
			c.ep.fail("a packet has %d bytes, and the MTU is %d", len(packet), c.mtu)
		}
		if c.g.one(500) && !c.ep.quiet {
			return errors.New("the queue is full")
		}
		return link.Down.Send(packet)
	}, c.opts...)
	c.host.ofPeer[c.peer] = c
	c.sendView()
	c.throttle()
}

func (c *conn) throttle() {
	c.peer.SetBudget(c.budget)
	c.peer.SetSendInterval(c.interval)
	c.peer.SetPriorityFunc(nil)
	if c.g.one(4) {
		g := c.g
		c.peer.SetPriorityFunc(func(_ []ecs.Entity, weights []float32) {
			for i := range weights {
				weights[i] *= float32(g.between(0.1, 5))
			}
		})
	}
}

func weather(g *chance, spoil bool) netsim.Config {
	cfg := pick(g,
		netsim.Config{}, netsim.Config{Latency: 2}, netsim.Config{Latency: 3, Loss: 0.05},
		netsim.Config{Latency: 6, Loss: 0.2, Duplicate: 0.2}, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.05},
		netsim.Config{Latency: 6, Loss: 0.2, Duplicate: 0.25, Reorder: 0.3, ReorderBy: 8},
		netsim.Config{Latency: 10, Jitter: 9, Loss: 0.5}, netsim.Config{Latency: 2, Loss: 0.25, Reorder: 0.04, ReorderBy: 40},
		netsim.Config{Latency: 4, Burst: netsim.Burst{Start: 0.01, Length: 40}}, netsim.Config{Latency: 25, Jitter: 5, Loss: 0.05},
	)
	if spoil {
		cfg.Corrupt = 0.1
	}
	return cfg
}

// orderly links never reorder packets, until they become faster at the end.
func (c *conn) orderly() bool { return c.bad.Jitter == 0 && c.bad.Reorder == 0 && !c.ep.quiet }

// receiveAll gives the server the packets from the client.
func (c *conn) receiveAll() {
	c.link.Up.Receive(func(packet []byte) {
		c.ep.packets++
		if err := c.peer.Err(); err != nil && c.returning == 0 { // it was dropped, and is received from again
			var gone *replication.DisconnectError
			if !errors.As(err, &gone) {
				c.ep.fail("Peer.Err is %v", err)
			}
			if gone.Reason.Code == replication.ReasonTimeout && c.sums {
				c.attach()
			}
		}
		c.known(c.peer.Receive(packet))
		c.replays(c.peer.Receive)
	})
	if c.host.plan.input && c.peer.Connected() {
		c.takeInput()
	}
}

// known fails on an undocumented error.
func (c *conn) known(err error) {
	if err == nil {
		return
	}
	for _, of := range []error{
		replication.ErrMalformed, replication.ErrChecksum, replication.ErrStale, replication.ErrUnexpected,
		replication.ErrMissingBaseline, replication.ErrMissingModel, replication.ErrFlood,
	} {
		if errors.Is(err, of) {
			return
		}
	}
	c.ep.fail("an error that is not documented: %v", err)
}

// listen gives the client the packets from the server.
func (c *conn) listen() {
	c.link.Step()
	c.link.Down.Receive(func(packet []byte) {
		c.ep.packets++
		if c.spoil && c.g.one(10) {
			c.old = append(c.old, append([]byte(nil), packet...))
			c.ep.replays = append(c.ep.replays, c.old[len(c.old)-1])
		}
		if c.tap != nil {
			c.tap(packet)
		}
		err := c.client.Receive(packet)
		c.known(err)
		isDisconnect := len(packet) > 4 && packet[4] == kindDisconnect // of a session that the client does not know
		if c.clean && !c.far && !isDisconnect && c.client.Stats().Sessions <= 1 && (errors.Is(err, replication.ErrMalformed) || errors.Is(err, replication.ErrChecksum)) {
			c.ep.fail("an honest packet is refused: %v; link %+v, %d packets", err, c.bad, c.client.Stats().Packets)
		}
		if c.clean && c.orderly() && errors.Is(err, replication.ErrMissingBaseline) {
			c.ep.fail("a baseline is missing that no packet can have overtaken: %v", err)
		}
		c.replays(c.client.Receive)
	})
}

// replays adds packets of other sessions and old ones, intact and damaged.
func (c *conn) replays(receive func([]byte) error) {
	if !c.spoil || c.ep.quiet || !c.g.one(10) || len(c.ep.replays) == 0 {
		return
	}
	packet := append([]byte(nil), pick(c.g, c.ep.replays...)...)
	if c.g.one(2) && len(packet) > 0 {
		packet[c.g.IntN(len(packet))] ^= 1 << c.g.IntN(8)
	}
	c.ep.packets++
	c.known(receive(packet))
}

// tickLength returns the length of a tick of a client's server.
func tickLength(c *replication.Client) time.Duration {
	if rate := time.Duration(c.TickRate()); rate > 0 {
		return (time.Second + rate - 1) / rate
	}
	return time.Second / 60
}

// step plays a tick of the client.
func (c *conn) step() {
	c.listen()
	if c.ep.tick%c.every != 0 {
		return
	}
	if !c.ep.quiet {
		c.play()
	}
	if c.host.plan.input {
		c.giveInput()
	}
	was := c.client.Complete()
	c.applies++
	err := c.client.Frame(tickLength(c.client))
	c.ended1(err)
	c.check()
	if was && err == nil && c.client.Complete() {
		c.complete()
	}
	if d := c.client.Divergence(); d != nil {
		c.ep.fail("state hashes differ: %v", d)
	}
	if c.g.one(10) {
		if d := c.client.Verify(); d != nil {
			c.ep.fail("the client's world is not what the client holds: %v", d)
		}
	}
}

// begins is the server's OnConnect hook.
func (c *conn) begins(peer *replication.Peer) {
	if peer != c.peer {
		c.ep.fail("OnConnect of a peer that is replaced")
	}
	c.rejoined = c.rejoined || c.begun // the client may have noticed the end of its session by itself
	c.begun = true
	c.session = uint32(c.host.server.Tick() + 1)
	c.down.restart()
}

// ends is the server's OnDisconnect hook.
func (c *conn) ends(peer *replication.Peer) {
	for e, owner := range c.host.owners {
		if owner == peer {
			delete(c.host.owners, e)
			delete(c.host.owned, e)
		}
	}
	if peer.Err() == nil || peer.Connected() {
		c.ep.fail("OnDisconnect of a peer that is connected")
	}
	if c.ep.gone[peer] {
		c.ep.fail("OnDisconnect twice")
	}
	c.ep.gone[peer] = true
}
