package game

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/inspect"
	"github.com/arche-replicate/arche-replicate/replication/predict"
	"github.com/arche-replicate/arche-replicate/replication/rewind"
)

// ReasonFull is the reason for which a player is refused.
const ReasonFull = replication.ReasonGame

// Host is the game on a server: players join and leave by messages, steer by inputs, and are sent
// what happens. Peers may come from any transport. In each tick, after packets were received:
//
//	host.Step()
//	server.Replicate()
type Host struct {
	Game      *Game
	Announced Announcements
	// OnJoin, if it is not nil, is called when a player has got a ship.
	OnJoin func(p *replication.Peer, name string)

	server *replication.Server
	model  *predict.Host
	seats  []*seat // in the order of their joins
	ticks  int
	rate   int
	grid   *replication.Grid // nil until somebody wants to see a part of the world
}

// Announcements counts the events announced by messages.
type Announcements struct {
	Joins  int `json:"joins"`
	Leaves int `json:"leaves"`
	Hits   int `json:"hits"` // sent to one or all clients
}

// seat is a peer that has joined, or wants to. Requests wait for the next step of the game, so that
// messages change nothing while the game is paused.
type seat struct {
	peer  *replication.Peer
	name  string
	ship  int // its number, or -1
	joins bool
	quits bool

	radius float64 // of what is sent; 0: everything
	place  vec     // of the ship, or where it was
}

// NewHost connects a game with the server of its world. Make it before clients connect.
func NewHost(g *Game, server *replication.Server, m *Model, tickRate int) *Host {
	h := &Host{Game: g, server: server, model: predict.Serve(server, m), rate: tickRate}
	g.past = rewind.New(server)
	replication.OnClientMessage(server, func(from *replication.Peer, m Join) {
		s := h.seat(from)
		s.joins, s.name = true, cmp.Or(m.Name, "nobody")
	})
	replication.OnClientMessage(server, func(from *replication.Peer, _ Leave) {
		h.seat(from).quits = true
	})
	replication.OnClientMessage(server, func(from *replication.Peer, m Wish) { h.grant(h.seat(from), m) })
	return h
}

// seat returns that of a peer.
func (h *Host) seat(p *replication.Peer) *seat {
	for _, s := range h.seats {
		if s.peer == p {
			return s
		}
	}
	s := &seat{peer: p, ship: -1}
	h.seats = append(h.seats, s)
	return s
}

// viewMargin is by how much farther away ships stay in view, in units.
const viewMargin = 30

// grant sends a peer the world as it wishes.
func (h *Host) grant(s *seat, m Wish) {
	s.peer.SetSendInterval(int(m.Every))
	s.radius = float64(m.Radius)
	if m.Radius == 0 {
		s.peer.SetInterest(replication.Interest{})
		return
	}
	if h.grid == nil {
		h.grid = h.server.NewGrid(128, "Position.X", "Position.Y")
	}
	s.peer.SetInterest(replication.Interest{Grid: h.grid, Margin: viewMargin})
	s.peer.LookFrom(s.radius, s.place.X, s.place.Y)
}

// Step plays a tick of the game.
func (h *Host) Step() {
	h.letIn()
	h.Game.begin()
	h.model.Step()
	h.Game.end(h.server.Tick() + 1)
	for _, s := range h.seats {
		if s.ship >= 0 {
			s.place = h.Game.radar.ships[s.ship].at
		}
		if s.radius > 0 {
			s.peer.LookFrom(s.radius, s.place.X, s.place.Y)
		}
	}
	h.announce()
	h.ticks++
}

// Sending fails only for clients that are gone or have not acknowledged anything for long. They
// miss events, but get the state when they are back.

// letIn handles the clients' requests, and removes the ships of clients that are gone.
func (h *Host) letIn() {
	for _, s := range h.seats {
		if s.quits || !s.peer.Connected() {
			h.retire(s)
		}
		if s.joins && s.peer.Connected() {
			h.join(s)
		}
		s.joins, s.quits = false, false
	}
	h.seats = slices.DeleteFunc(h.seats, func(s *seat) bool { return !s.peer.Connected() })
}

// join gives a client a ship.
func (h *Host) join(s *seat) {
	if s.ship < 0 {
		number, ok := h.Game.Join(s.name, s.peer)
		if !ok {
			s.peer.Disconnect(replication.Reason{Code: ReasonFull, Text: "the arena is full"})
			return
		}
		s.ship = number
		h.model.Own(h.Game.ships[number], s.peer)
		h.Announced.Joins++
		_ = replication.SendToAll(h.server, Joined{uint16(number), s.name})
		if h.OnJoin != nil {
			h.OnJoin(s.peer, s.name)
		}
	}
	_ = replication.SendToClient(s.peer, Welcome{uint16(s.ship), uint8(h.rate), uint32(inspect.PeerNumber(s.peer))})
}

// retire takes a client's ship away, if it has one.
func (h *Host) retire(s *seat) {
	if s.ship < 0 {
		return
	}
	name := h.Game.players[s.ship].name
	h.Game.Leave(s.ship)
	s.ship = -1
	h.Announced.Leaves++
	_ = replication.SendToAll(h.server, Left{name})
}

// announce sends the events of a step.
func (h *Host) announce() {
	g := h.Game
	for _, hit := range g.hits {
		message := Hit{Victim: uint16(hit.victim), Shooter: uint16(hit.shooter), Fatal: hit.fatal}
		if g.players[hit.victim].present {
			h.Announced.Hits++
			_ = replication.SendToViewers(h.server, g.ships[hit.victim], message)
			continue
		}
		for _, s := range h.seats {
			if s.ship == hit.shooter {
				h.Announced.Hits++
				_ = replication.SendToClient(s.peer, message)
			}
		}
	}
	if h.ticks%h.rate == 0 {
		players := uint16(h.Announced.Joins - h.Announced.Leaves)
		_ = replication.SendToAll(h.server, Status{g.Match().Phase, players, uint32(g.Tally.Hits)})
	}
}
