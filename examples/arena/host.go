package main

import "github.com/arche-replicate/arche-replicate/replication"

// host is the server: the game, its replication, and the clients.
type host struct {
	game   *Game
	server *replication.Server
	guests []*guest

	ticks    int // simulation steps so far, including quiet ones
	tickRate int
	sendStep int

	byPeer    map[*replication.Peer]*guest
	events    []event
	announced announcements

	reader *reader
	truth  *truth
	costs  accountant
	meter  meter
}

// announcements counts the events announced by messages.
type announcements struct {
	Joins  int `json:"joins"`
	Leaves int `json:"leaves"`
	Hits   int `json:"hits"` // sent to one or all clients
}

// guest is a client on the server's side.
type guest struct {
	number int // from 0
	line   *line
	peer   *replication.Peer
	ship   int     // the number of its ship, or -1
	joined int     // the step at which it joined
	left   int     // the step at which it left, or -1
	raw    uint64  // bytes that snapshots would have taken in place of its packets, see cost
	json   uint64  // the same in JSON
	view   outlook // the client's own estimates, for the report
}

func newHost(c *config) *host {
	h := &host{
		game:     NewGame(c.seed, c.bots, c.tickRate),
		tickRate: c.tickRate,
		sendStep: c.sendStep(),
		byPeer:   map[*replication.Peer]*guest{},
		truth:    newTruth(),
	}
	schema := NewSchema()
	opts := []replication.ServerOption{replication.WithTickRate(c.tickRate)}
	if c.serve == "" { // a seed is for runs that are to be the same each time, not for open networks
		opts = append(opts, replication.WithSeed(c.seed))
	}
	h.server = replication.NewServer(&h.game.World, schema, opts...)
	h.listen()
	h.reader = newReader(&h.game.World, schema)
	return h
}

// welcome connects a client. From here on the library does everything with the packets that arrive
// on the line.
func (h *host) welcome(l *line) *guest {
	g := &guest{number: len(h.guests), line: l, ship: -1, joined: h.ticks, left: -1}
	g.peer = h.server.Connect(l.send)
	g.peer.SetSendInterval(h.sendStep)
	h.byPeer[g.peer] = g
	h.guests = append(h.guests, g)
	return g
}

// gone reports whether the client has left.
func (g *guest) gone() bool { return g.left >= 0 }

// dismiss disconnects a client.
func (h *host) dismiss(g *guest) {
	if g.gone() {
		return
	}
	g.left = h.ticks
	g.peer.Disconnect(replication.Reason{})
	g.line.port.close()
}

// step is one iteration of the server's loop: receive packets, step the game, send. It returns the changes
// for records elsewhere. After the fight the game is paused and only replication goes on.
func (h *host) step(fight bool) []change {
	for _, g := range h.guests {
		if g.gone() {
			continue
		}
		g.line.step()
		g.line.receive(func(packet []byte) {
			_ = g.peer.Receive(packet) // refused packets are counted in its Stats
		})
	}
	if fight {
		h.letIn()
		h.command()
		h.game.Step()
		h.announce()
	}
	h.ticks++
	h.server.Replicate()
	changes := h.truth.record(uint32(h.server.Tick()), &h.game.World, h.reader, h.server.NetID)
	if h.ticks%h.sendStep == 0 {
		h.costs.update(h)
		h.countSnapshots()
	}
	for _, g := range h.guests {
		if !g.gone() {
			g.line.flush()
		}
	}
	return changes
}

// countSnapshots adds the size of snapshots for every connected client.
func (h *host) countSnapshots() {
	for _, g := range h.guests {
		if !g.gone() && g.peer.Connected() {
			g.raw += uint64(h.costs.Raw)
			g.json += uint64(h.costs.JSON)
		}
	}
}

// seconds returns how long a client has been connected.
func (h *host) seconds(g *guest) float64 {
	until := h.ticks
	if g.gone() {
		until = g.left
	}
	return float64(until-g.joined) / float64(h.tickRate)
}

// figures returns the current figures. The clients report their comparisons.
func (h *host) figures(c *config, checks, wrong int) figures {
	var roundTrip mean
	for _, g := range h.guests {
		if !g.gone() {
			roundTrip.add(g.view.RoundTrip)
		}
	}
	f := h.meter.figures(h.ticks, c, &h.costs.cost, h.traffic(h.guests))
	f.roundTrip, f.checks, f.wrong = roundTrip.value(), checks, wrong
	return f
}

// traffic returns what was sent to some clients.
func (h *host) traffic(guests []*guest) traffic {
	var t traffic
	for _, g := range guests {
		p := g.peer.Stats()
		t.Bytes += p.Bytes + p.MessageBytes
		t.Packets += p.Packets
		t.Lost += p.Lost
		t.Seconds += h.seconds(g)
	}
	return t
}

// heal makes the network perfect.
func (h *host) heal() {
	for _, g := range h.guests {
		g.line.heal()
	}
}
