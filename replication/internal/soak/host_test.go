package soak

import (
	"math"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// A host is a server, the truth of its world, and everything that decides who sees which entity.
type host struct {
	ep     *episode
	name   string
	g      *chance
	world  *ecs.World
	plan   *plan
	schema *replication.Schema
	server *replication.Server
	truth  *truth
	conns  []*conn
	ofPeer map[*replication.Peer]*conn

	checksums bool
	mtu       int
	newest    ecs.Entity // spawned since the latest Replicate

	sets    []*set
	groups  []*group
	groupOf map[ecs.Entity]*group
	owners  map[ecs.Entity]*replication.Peer
	picked  [2]map[*conn]bool
	grids   []*replication.Grid
	owned   map[ecs.Entity]bool  // entities with an owner, and whether they were replicated yet
	veiled  map[ecs.Entity]uint8 // entities hidden by the Visible functions, by bit
	grouped [][]*life            // by number of group: all members ever

	waiting []*sent // messages that get their tick from the next Replicate
	fires   []fire  // asked for by clients
}

type set struct {
	set     *replication.EntitySet
	members map[ecs.Entity]bool // and whether each was replicated yet
}

type group struct {
	number  int
	group   *replication.Group
	members map[ecs.Entity]bool
}

func newHost(ep *episode, name string, world *ecs.World, p *plan, marker ecs.ID, own replication.ServerOption) *host {
	g := newChance(ep.seed, 100+uint64(len(ep.hosts)))
	h := &host{
		ep: ep, name: name, g: g, world: world, plan: p, ofPeer: map[*replication.Peer]*conn{}, checksums: !g.one(5),
		groupOf: map[ecs.Entity]*group{}, owners: map[ecs.Entity]*replication.Peer{}, veiled: map[ecs.Entity]uint8{},
		owned: map[ecs.Entity]bool{},
	}
	for i := range h.picked {
		h.picked[i] = map[*conn]bool{}
	}
	h.schema = p.schema(false, func(i int, peer *replication.Peer) bool { return h.picked[i][h.ofPeer[peer]] })
	h.mtu = pick(g, 180, 400, 1200, 1200, 1200, 5000)
	opts := []replication.ServerOption{replication.WithSeed(ep.seed + uint64(len(ep.hosts))<<32), replication.WithMTU(h.mtu)}
	if own != nil {
		opts = append(opts, own)
	}
	if !h.checksums {
		opts = append(opts, replication.WithoutChecksum())
	}
	joinWork := pick(g, 1000, 10_000)
	for _, o := range []replication.ServerOption{
		replication.WithTuning(replication.Tuning{BaselineInterval: pick(g, 2, 4, 8)}), replicationtest.FirstTick(-uint32(g.IntN(300))),
		replicationtest.FirstSequence(uint16(-g.IntN(300))), replication.WithTuning(replication.Tuning{StateHash: 1 + g.IntN(20)}),
		replication.WithTickRate(pick(g, 10, 30, 60)), replication.WithTimeout(time.Duration(150+g.IntN(100)) * time.Second / 60), // an idle peer is received from once per second
		replication.WithTuning(replication.Tuning{Window: pick(g, 8, 12, 20, 32, 8+g.IntN(113))}), replication.WithTuning(replication.Tuning{Workers: 2 + g.IntN(3)}),
		replication.WithTuning(replication.Tuning{SlotRest: time.Duration(g.IntN(40)) * time.Second / 60}),
		config.ServerFunc(func(o *config.ServerOptions) { o.JoinWork = joinWork }),
	} {
		if g.one(3) {
			opts = append(opts, o)
		}
	}
	h.server = replication.NewServer(world, h.schema, opts...)
	h.truth = newTruth(world, p, h.server, marker)
	h.truth.fail = ep.fail
	h.server.OnConnect(func(peer *replication.Peer) { h.ofPeer[peer].begins(peer) })
	h.server.OnDisconnect(func(peer *replication.Peer) { h.ofPeer[peer].ends(peer) })
	for range g.IntN(3) {
		grid := h.server.NewGrid(pick(g, 5.0, 40, 100), p.spotFields()...)
		if g.one(2) {
			grid.SortSpawns()
		}
		h.grids = append(h.grids, grid)
	}
	for range g.IntN(4) {
		h.sets = append(h.sets, &set{h.server.NewEntitySet(), map[ecs.Entity]bool{}})
	}
	if g.one(2) {
		for range 1 + g.IntN(3) {
			h.groups = append(h.groups, &group{len(h.groups) + 1, h.server.NewGroup(), map[ecs.Entity]bool{}})
		}
	}
	h.grouped = make([][]*life, len(h.groups)+1)
	h.takeNotes()
	ep.hosts = append(ep.hosts, h)
	return h
}

// replicate plays a tick and records the truth.
func (h *host) replicate() {
	before := h.server.Tick()
	h.server.Replicate()
	if h.truth.ticks > 0 && h.server.Tick() != before+1 {
		h.ep.fail("%s: tick %d follows %d", h.name, h.server.Tick(), before)
	}
	h.truth.record()
	h.settle()
	for _, l := range h.truth.here {
		number := 0
		if g := h.groupOf[l.e]; g != nil {
			number = g.number
		}
		if l.group.last() != number && number > 0 {
			h.grouped[number] = append(h.grouped[number], l)
		}
		l.group.set(h.truth.now, number)
		if h.server.Owner(l.e) != h.owners[l.e] {
			h.ep.fail("%s: %v has another owner", h.name, l.id)
		}
	}
	for _, c := range h.conns {
		c.look()
	}
	h.posted()
}

// settle removes dead entities from sets and groups, and entities that are no longer replicated
// from owners.
func (h *host) settle() {
	sweep := func(members map[ecs.Entity]bool, unmarked bool, out func(e ecs.Entity)) {
		for e, was := range members {
			if !h.world.Alive(e) || unmarked && was && h.truth.byEntity[e] == nil {
				delete(members, e)
				out(e)
			} else if h.truth.byEntity[e] != nil {
				members[e] = true
			}
		}
	}
	for _, s := range h.sets {
		sweep(s.members, false, func(ecs.Entity) {})
		if s.set.Len() != len(s.members) {
			h.ep.fail("%s: a set has %d members, not %d", h.name, s.set.Len(), len(s.members))
		}
	}
	for _, g := range h.groups {
		sweep(g.members, false, func(e ecs.Entity) { delete(h.groupOf, e) })
		if g.group.Len() != len(g.members) {
			h.ep.fail("%s: a group has %d members, not %d", h.name, g.group.Len(), len(g.members))
		}
	}
	sweep(h.owned, true, func(e ecs.Entity) { delete(h.owners, e) })
}

// forget mirrors the effect of a world reset.
func (h *host) forget() {
	for _, s := range h.sets {
		clear(s.members)
	}
	for _, g := range h.groups {
		clear(g.members)
	}
	clear(h.groupOf)
	h.truth.here = h.truth.here[:0]
	clear(h.truth.byEntity)
	clear(h.owners)
	clear(h.owned)
	clear(h.veiled)
}

// shuffle changes members of sets and groups, owners and visibility.
func (h *host) shuffle() {
	g := h.g
	if len(h.truth.here) == 0 {
		return
	}
	for range g.IntN(3) {
		e := h.truth.here[g.IntN(len(h.truth.here))].e
		if g.one(4) && h.newest != (ecs.Entity{}) {
			e = h.newest // not found by a Replicate yet
		}
		if !h.world.Alive(e) || !h.world.Has(e, h.truth.marker) {
			continue
		}
		switch g.IntN(5) {
		case 0:
			if len(h.sets) > 0 {
				s := pick(g, h.sets...)
				if _, in := s.members[e]; in {
					s.set.Remove(e)
					delete(s.members, e)
				} else {
					s.set.Add(e)
					s.members[e] = false
				}
			}
		case 1:
			h.regroup(e)
		case 2:
			var peer *replication.Peer
			if c := h.someConn(); c != nil && c.peer.Err() == nil && !g.one(4) {
				peer = c.peer
			}
			h.server.SetOwner(e, peer)
			delete(h.owners, e)
			delete(h.owned, e)
			if peer != nil {
				h.owners[e], h.owned[e] = peer, false
			}
		case 3:
			h.veiled[e] ^= 1 << g.IntN(3)
		default:
			if h.truth.byEntity[e] != nil {
				h.server.SetPriority(e, float32(g.between(0.1, 10)))
			}
		}
	}
	if g.one(30) {
		if c := h.someConn(); c != nil {
			i := g.IntN(2)
			h.picked[i][c] = !h.picked[i][c]
		}
	}
}

func (h *host) regroup(e ecs.Entity) {
	if len(h.groups) == 0 {
		return
	}
	if old := h.groupOf[e]; old != nil {
		old.group.Remove(e)
		delete(old.members, e)
		delete(h.groupOf, e)
		if h.g.one(2) {
			return
		}
	}
	if to := pick(h.g, h.groups...); len(to.members) < 5 {
		to.group.Add(e)
		to.members[e] = false
		h.groupOf[e] = to
	}
}

func (h *host) someConn() *conn {
	if len(h.conns) == 0 {
		return nil
	}
	return pick(h.g, h.conns...)
}

// position returns where the grid has an entity, and the tolerance.
func (h *host) position(l *life) (place []float64, off float64, ok bool) {
	v := l.at(h.plan.spot.index, h.truth.now)
	if v == nil {
		return nil, 0, false
	}
	for _, c := range v.cells {
		w := valueOf[float32](c)
		if w != w {
			w = -100
		}
		place = append(place, math.Min(math.Max(w, -100), 100))
	}
	return place, 0.25*math.Sqrt(float64(len(place))) + 1e-3, true
}
