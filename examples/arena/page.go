//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/inspect"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/web"
)

// page serves the match to browsers. Its handlers run on goroutines of their own: what concerns the
// match goes to its loop through commands, and comes from there through state and ghosts.
type page struct {
	*site
	network  *breaker
	commands chan func(m *match)

	state  atomic.Pointer[pageState]
	ghosts atomic.Pointer[[]byte]
	looked atomic.Int64 // when somebody asked for ghosts, in Unix milliseconds
}

// pageState is what /debug/arena.json has.
type pageState struct {
	Tick     uint32  `json:"tick"`
	Entities int     `json:"entities"`
	Sum      string  `json:"sum"` // over all values of all entities
	Players  int     `json:"players"`
	Frozen   bool    `json:"frozen"`
	RawKbit  float64 `json:"rawKbit"`  // per second, for a client that were sent all entities as codes of fixed width
	JSONKbit float64 `json:"jsonKbit"` // as JSON
	Heap     uint64  `json:"heap"`     // bytes of this process that were in use after the latest garbage collection
}

// openPage serves the page, and prints where.
func (m *match) openPage(ctx context.Context, s *screen) error {
	site, err := newSite(m.c, "")
	if err != nil {
		return err
	}
	p := &page{site: site, network: newBreaker(m.c), commands: make(chan func(m *match), 16)}
	m.page, m.c.pageAddress = p, p.address
	m.closers = append(m.closers, p.network.close)
	m.heal = append(m.heal, p.network.heal)
	if err := m.route(p); err != nil {
		return err
	}
	m.publish()
	m.closers = append(m.closers, p.serve(ctx, m.c, s, count(m.c.bots, "bot")))
	return nil
}

// route adds what is served of a match.
func (m *match) route(p *page) error {
	host, _, _ := net.SplitHostPort(m.c.http)
	for path, coding := range map[string]replication.Coding{
		"/play": replication.Packed, "/play/compact": replication.Compact,
	} {
		handler := web.NewHandler(m.server, web.WithNetwork(p.network.network), web.WithCoding(coding),
			web.WithLimits(transport.Limits{Peers: maxClients, PeersPerIP: maxClients}))
		m.closers = append(m.closers, func() { _ = handler.Close() }) // nothing is lost with it
		if err := handler.WebTransport(net.JoinHostPort(host, "0"), nil); err != nil {
			return err
		}
		m.receive = append(m.receive, handler.Poll)
		p.mux.Handle(path, handler)
	}
	inspector := inspect.Server(m.server, inspect.WithName("arena"))
	m.closers = append(m.closers, inspector.Close)
	p.mux.Handle("/debug/replication/", local(inspector))
	p.mux.Handle("GET /debug/replication/inspect.js", inspector) // a script, which players elsewhere load as well
	p.mux.Handle("GET /debug/arena.json", local(http.HandlerFunc(p.serveState)))
	p.mux.Handle("GET /debug/truth", local(http.HandlerFunc(p.serveGhosts)))
	p.mux.Handle("/break", local(http.NewCrossOriginProtection().Handler(http.HandlerFunc(p.serveBreak))))
	return nil
}

func (p *page) serveState(w http.ResponseWriter, _ *http.Request) {
	state := *p.state.Load()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	state.Heap = live[0].Value.Uint64()
	writeJSON(w, state)
}

// serveGhosts serves where ships are now, in little-endian order: the tick, and for each ship its number, its
// position and its heading, 4 bytes each.
func (p *page) serveGhosts(w http.ResponseWriter, _ *http.Request) {
	p.looked.Store(time.Now().UnixMilli())
	w.Header().Set("Content-Type", "application/x-arena-ships")
	if ships := p.ghosts.Load(); ships != nil {
		_, _ = w.Write(*ships) // lost: the page asks again
	}
}

// serveBreak changes the network or the match, and answers with the settings.
func (p *page) serveBreak(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		action, err := p.network.change(http.MaxBytesReader(w, r.Body, 1<<16))
		if err == nil {
			err = p.command(r.Context(), action)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "GET returns the settings, POST changes them", http.StatusMethodNotAllowed)
		return
	}
	settings := p.network.settings()
	settings.Frozen = p.state.Load().Frozen
	writeJSON(w, settings)
}

// command makes the loop of the match do something, and waits until it did. The terminal always
// gets the settings of the network.
func (p *page) command(ctx context.Context, action string) error {
	var do func(m *match)
	switch action {
	case "", "blackout":
		do = func(*match) {}
	case "teleport":
		do = func(m *match) { m.host.Game.Scatter(); m.tape.mark("teleport") }
	case "reset":
		do = func(m *match) { m.host.Game.Restart(); m.tape.mark("new match") }
	case "freeze", "resume":
		do = func(m *match) {
			m.frozen = action == "freeze"
			m.host.Game.Pause(m.frozen)
		}
	default:
		return fmt.Errorf("there is no action %q: blackout, teleport, reset, freeze and resume are some", action)
	}
	done := make(chan struct{})
	select {
	case p.commands <- func(m *match) { do(m); p.network.copyTo(m.c); m.publish(); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		return errors.New("the match has ended")
	}
	return nil
}

// publishEvery is how many ticks pass between two states of the match for the page.
const publishEvery = 6

// tend does what the page has asked for, before a step of the game.
func (p *page) tend(m *match, s *screen) {
	for {
		select {
		case text := <-p.trouble:
			s.printLine(text)
			continue
		case do := <-p.commands:
			do(m)
			continue
		default:
		}
		break
	}
	m.tape.mark(p.network.changes())
	if !m.frozen {
		m.host.Game.FillUp(m.c.bots)
	}
}

// publish lets the page see the state of the match.
func (m *match) publish() {
	now := m.truth.census()
	raw, json := m.costs.snapshots(m.c.sendRate)
	m.page.state.Store(&pageState{
		Tick: uint32(m.server.Tick()), Entities: now.Entities, Sum: hex(now.Sum), Players: m.present(),
		Frozen: m.frozen, RawKbit: tenth(raw), JSONKbit: tenth(json),
	})
}

// show publishes after a step what somebody looks at.
func (p *page) show(m *match) {
	if m.ticks%publishEvery == 0 {
		m.publish()
	}
	if m.ticks%2 == 0 && time.Now().UnixMilli()-p.looked.Load() < 1000 {
		ships := m.host.Game.AppendShips(nil, uint32(m.server.Tick()))
		p.ghosts.Store(&ships)
	}
}
