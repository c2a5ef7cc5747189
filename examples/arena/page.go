//go:build !js

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/inspect"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/web"
)

//go:embed page
var pageFiles embed.FS

// page serves the match to browsers. Its handlers run on goroutines of their own: what concerns the
// match goes to its loop through commands, and comes from there through state and ghosts.
type page struct {
	address  string // of the page: a URL
	network  *breaker
	build    *build
	commands chan func(m *match)
	trouble  chan string // for the person at the terminal

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
	listener, err := listenNear(m.c.http, !m.c.httpGiven)
	if err != nil {
		return fmt.Errorf("no page can be served: %w", err)
	}
	p := &page{
		address: urlOf(listener.Addr()), network: newBreaker(m.c), build: newBuild(),
		commands: make(chan func(m *match), 16), trouble: make(chan string, 2),
	}
	m.page, m.c.pageAddress = p, p.address
	m.closers = append(m.closers, p.network.close)
	m.heal = append(m.heal, p.network.heal)

	mux, err := m.routes(p)
	if err != nil {
		return err
	}
	m.publish()

	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	m.closers = append(m.closers, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.trouble <- fmt.Sprintf("arena: the page is no longer served: %v", err)
		}
	}()
	s.printLine(fmt.Sprintf("arena: %s; play at %s", count(m.c.bots, "bot"), p.address))
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	m.closers = append(m.closers, func() { cancel(); <-done })
	go func() {
		defer close(done)
		if err := p.build.run(ctx); err != nil && ctx.Err() == nil {
			p.trouble <- fmt.Sprintf("arena: %v", err)
		}
	}()
	if m.c.open {
		openBrowser(ctx, p.address)
	}
	if m.c.onListen != nil {
		m.c.onListen(p.address)
	}
	return nil
}

// routes returns what is served where.
func (m *match) routes(p *page) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	host, _, _ := net.SplitHostPort(m.c.http)
	for path, coding := range map[string]replication.Coding{
		"/play": replication.Packed, "/play/compact": replication.Compact,
	} {
		handler := web.NewHandler(m.server, web.WithNetwork(p.network.network), web.WithCoding(coding),
			web.WithLimits(transport.Limits{Peers: maxClients, PeersPerIP: maxClients}))
		m.closers = append(m.closers, func() { _ = handler.Close() }) // nothing is lost with it
		if err := handler.WebTransport(net.JoinHostPort(host, "0"), nil); err != nil {
			return nil, err
		}
		m.receive = append(m.receive, handler.Poll)
		mux.Handle(path, handler)
	}
	inspector := inspect.Server(m.server, inspect.WithName("arena"))
	m.closers = append(m.closers, inspector.Close)
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		return nil, err
	}
	mux.Handle("/", fresh(http.FileServerFS(files)))
	mux.HandleFunc("GET /status", p.build.serveStatus)
	mux.HandleFunc("GET /client.wasm", p.build.serveWasm)
	mux.HandleFunc("GET /wasm_exec.js", p.build.serveLoader)
	mux.Handle("/debug/replication/", local(inspector))
	mux.Handle("GET /debug/replication/inspect.js", inspector) // a script, which players elsewhere load as well
	mux.Handle("GET /debug/arena.json", local(http.HandlerFunc(p.serveState)))
	mux.Handle("GET /debug/truth", local(http.HandlerFunc(p.serveGhosts)))
	mux.Handle("/break", local(http.NewCrossOriginProtection().Handler(http.HandlerFunc(p.serveBreak))))
	return mux, nil
}

// listenNear listens at an address, or at one of the next ports if that is taken and others may be.
func listenNear(address string, others bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	first, _ := strconv.Atoi(port)
	for i := 1; err != nil && others && i <= 20; i++ {
		listener, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(first+i)))
	}
	return listener, err
}

// urlOf returns the address of the page for this machine.
func urlOf(a net.Addr) string {
	at := a.(*net.TCPAddr).AddrPort()
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return "http://" + at.String() + "/"
}

// openBrowser shows the page where there is a display. It may fail, as the address is printed.
func openBrowser(ctx context.Context, url string) {
	var command []string
	switch {
	case runtime.GOOS == "darwin":
		command = []string{"open", url}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		command = []string{"xdg-open", url}
	default:
		return
	}
	go func() { _ = exec.CommandContext(ctx, command[0], command[1:]...).Run() }()
}

// fresh makes browsers ask whether a file has changed.
func fresh(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		h.ServeHTTP(w, r)
	})
}

var errForwarded = errors.New("a proxy has passed the request on")

// local refuses requests from other machines, also through a proxy here, and of pages that reach this one by a name of
// theirs.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		_, notIP := netip.ParseAddr(strings.Trim(host, "[]"))
		for _, by := range []string{"Forwarded", "X-Forwarded-For", "Via"} { // a proxy here stands for anybody
			if r.Header.Get(by) != "" {
				err = errForwarded
			}
		}
		if err != nil || !from.Addr().Unmap().IsLoopback() || host != "localhost" && notIP != nil {
			http.Error(w, "only pages of this machine may do this: open the arena at 127.0.0.1", http.StatusForbidden)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
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
		do = func(m *match) { m.host.Game.Scatter() }
	case "reset":
		do = func(m *match) { m.host.Game.Restart() }
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

// hex writes a sum as the page does.
func hex(sum uint64) string { return fmt.Sprintf("%016x", sum) }

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
