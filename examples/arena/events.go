package main

import (
	"cmp"

	"github.com/arche-replicate/arche-replicate/replication"
)

// reasonFull is the reason for which a client is refused.
const reasonFull = replication.ReasonGame

// event is a client's request to join or to leave. It waits for the next step of the game, so that
// messages change nothing while the game is paused.
type event struct {
	guest *guest
	join  bool
	name  string
}

// listen registers the handlers of the clients' messages.
func (h *host) listen() {
	replication.OnClientMessage(h.server, func(from *replication.Peer, m Join) {
		h.events = append(h.events, event{h.byPeer[from], true, cmp.Or(m.Name, "nobody")})
	})
	replication.OnClientMessage(h.server, func(from *replication.Peer, _ Leave) {
		h.events = append(h.events, event{guest: h.byPeer[from]})
	})
}

// Sending fails only for clients that are gone or have not acknowledged anything for long. They
// miss events, but get the state when they are back.

// letIn handles the clients' requests, and removes the ships of clients that are gone.
func (h *host) letIn() {
	for _, e := range h.events {
		switch g := e.guest; {
		case g.gone():
		case !e.join:
			h.retire(g)
		default:
			h.join(g, e.name)
		}
	}
	h.events = h.events[:0]
	for _, g := range h.guests {
		if !g.peer.Connected() {
			h.retire(g)
		}
	}
}

// join gives a client a ship.
func (h *host) join(g *guest, name string) {
	if g.ship < 0 {
		number, ok := h.game.Join(name)
		if !ok {
			g.peer.Disconnect(replication.Reason{Code: reasonFull, Text: "the arena is full"})
			return
		}
		g.ship = number
		h.announced.Joins++
		_ = replication.SendToAll(h.server, Joined{uint16(number), name})
	}
	_ = replication.SendToClient(g.peer, Welcome{uint16(g.ship), uint8(h.tickRate)})
}

// retire takes a client's ship away, if it has one.
func (h *host) retire(g *guest) {
	if g.ship < 0 {
		return
	}
	name := h.game.players[g.ship].name
	h.game.Leave(g.ship)
	g.ship = -1
	h.announced.Leaves++
	_ = replication.SendToAll(h.server, Left{name})
}

// command gives the inputs of all players for the coming tick to the game.
func (h *host) command() {
	for _, g := range h.guests {
		if g.ship < 0 {
			continue
		}
		// A ship without an input moves on as before, but does not shoot.
		controls, ok := replication.Input[Controls](g.peer, h.server.Tick()+1)
		controls.Fire = controls.Fire && ok
		h.game.Command(g.ship, controls)
	}
}

// announce sends the events of a step.
func (h *host) announce() {
	for _, s := range h.game.hits {
		hit := Hit{Victim: uint16(s.victim), Shooter: uint16(s.shooter), Fatal: s.fatal}
		if h.game.players[s.victim].present {
			h.announced.Hits++
			_ = replication.SendToViewers(h.server, h.game.ships[s.victim], hit)
			continue
		}
		for _, g := range h.guests {
			if g.ship == s.shooter {
				h.announced.Hits++
				_ = replication.SendToClient(g.peer, hit)
			}
		}
	}
	if h.ticks%h.tickRate == 0 {
		players := uint16(h.announced.Joins - h.announced.Leaves)
		status := Status{h.game.status.Get(h.game.match).Phase, players, uint32(h.game.Tally.Hits)}
		_ = replication.SendToAll(h.server, status)
	}
}
