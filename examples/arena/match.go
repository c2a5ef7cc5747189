package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/loop"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
)

// reasonOver is the reason for which a server disconnects its clients at the end.
const reasonOver = game.ReasonFull + 1

// match is a server, its guests, and those of their clients that run in this process.
type match struct {
	c       *config
	host    *game.Host
	server  *replication.Server
	guests  []*guest
	clients []*client
	receive []func() // gives the server what has arrived
	heal    []func() // makes the network perfect
	closers []func()
	ticks   int   // steps so far, including quiet ones
	page    *page // nil if none is served
	frozen  bool  // by the page
	tape    *tape // nil if nothing is recorded

	reader *game.Reader
	truth  *truth
	costs  accountant
	meter  meter
}

// guest is a client on the server's side.
type guest struct {
	peer   *replication.Peer
	name   string  // of its player, once there is one
	client *client // nil if it runs elsewhere
	joined int     // the step at which it joined
	left   int     // the step at which it left, or -1

	compared, equal bool // with the world at the end
	checks, wrong   int  // entities that it compared with hashes meanwhile, and of these, those that differed
}

func newMatch(c *config) *match {
	g := game.New(c.seed, c.bots, c.tickRate)
	if c.http != "" {
		g.FightSeconds = pageFight
	}
	m := &match{c: c, truth: newTruth()}
	schema, model := game.NewSchema()
	opts := []replication.ServerOption{replication.WithTickRate(c.tickRate)}
	if !c.elsewhere() { // a seed is for runs that are to be the same each time, not for open networks
		opts = append(opts, replication.WithSeed(c.seed))
	} else { // clients elsewhere have no record to compare with
		opts = append(opts, replication.WithTuning(replication.Tuning{StateHash: hashInterval}))
	}
	m.server = replication.NewServer(&g.World, schema, opts...)
	m.host = game.NewHost(g, m.server, model, c.tickRate)
	m.reader = game.NewReader(&g.World, schema)
	m.host.OnJoin = m.joined
	m.server.OnConnect(m.admit)
	m.server.OnDisconnect(func(p *replication.Peer) {
		for _, g := range m.guests {
			if g.peer == p {
				m.gone(g)
			}
		}
	})
	replication.OnClientMessage(m.server, func(from *replication.Peer, message game.Compared) {
		for _, g := range m.guests {
			if g.peer == from {
				g.compared, g.equal = true, message.Equal
			}
		}
	})
	replication.OnClientMessage(m.server, func(from *replication.Peer, message game.Checked) {
		for _, g := range m.guests {
			if g.peer == from {
				g.checks += int(message.Entities)
				g.wrong += int(message.Wrong)
			}
		}
	})
	return m
}

// pageFight is how long people fight in a round.
const pageFight = 60

// hashInterval is that of replication.Tuning.StateHash, in ticks.
const hashInterval = 30

// mostGuests is how many are kept for the table, those who have left included.
const mostGuests = 1000

// admit makes a peer a guest. It is called again if its client begins a new session.
func (m *match) admit(p *replication.Peer) {
	for _, g := range m.guests {
		if g.peer == p {
			return
		}
	}
	if len(m.guests) > mostGuests { // a page is open for long
		m.guests = slices.DeleteFunc(m.guests, func(g *guest) bool { return g.left >= 0 })
	}
	p.SetSendInterval(m.c.sendStep())
	g := &guest{peer: p, joined: m.ticks, left: -1}
	for _, client := range m.clients {
		if client.Name == string(p.JoinData()) {
			g.client = client
		}
	}
	m.guests = append(m.guests, g)
}

// addClient connects a client of this process, over a simulated link.
func (m *match) addClient(i int) {
	client := newClient(i, m.c.predict, false)
	link := netsim.NewLink(m.c.seed+uint64(i), m.c.network().Config(m.c.tickRate))
	peer := m.server.Connect(link.Down.Send)
	m.admit(peer)
	m.guests[len(m.guests)-1].client = client
	client.Client.SetSend(link.Up.Send)
	client.receive = func() {
		link.Down.Receive(func(packet []byte) { _ = client.Client.Receive(packet) }) // counted in its Stats
	}
	m.receive = append(m.receive, func() {
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) }) // counted in its Stats
	})
	m.heal = append(m.heal, func() { link.SetConfig(netsim.Config{}) })
	m.clients = append(m.clients, client)
}

// listen opens a socket for clients.
func (m *match) listen(address string) (*udp.Listener, error) {
	listener, err := udp.Listen(address, m.server,
		udp.WithLimits(transport.Limits{Peers: maxClients, PeersPerIP: maxClients}))
	if err != nil {
		return nil, err
	}
	m.receive = append(m.receive, listener.Poll)
	m.closers = append(m.closers, func() { _ = listener.Close() }) // nothing is lost with it
	return listener, nil
}

// open connects the clients of this process, or opens the server's socket.
func (m *match) open(ctx context.Context, s *screen) error {
	c := m.c
	if c.http != "" {
		return m.openPage(ctx, s)
	}
	if c.serve == "" {
		s.printLine(fmt.Sprintf("arena: %s and %s in one process for %.4g s\nlink: %s",
			count(c.bots, "bot"), count(c.clients, "client"), float64(c.ticks)/float64(c.tickRate), c.link()))
	}
	if c.serve == "" && c.transport == "memory" {
		for i := range c.clients {
			m.addClient(i)
		}
		return nil
	}
	listener, err := m.listen(cmp.Or(c.serve, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if c.serve != "" {
		s.printLine(fmt.Sprintf("arena: serving at %s; start clients with:\n  go run ./examples/arena -connect %s",
			address, address))
		if c.onListen != nil {
			c.onListen(address)
		}
		return nil
	}
	network := netsim.NewNetwork(c.seed, c.network())
	m.closers = append(m.closers, network.Close)
	m.heal = append(m.heal, func() { network.Set(netsim.Profile{}) })
	for i := range c.clients {
		client := newClient(i, c.predict, false)
		if err := client.dial(address, network); err != nil {
			return err
		}
		m.closers = append(m.closers, client.close)
		m.clients = append(m.clients, client)
	}
	return nil
}

func (m *match) close() {
	m.tape.close(0) // after an error
	for _, g := range m.guests {
		if g.left < 0 {
			g.peer.Disconnect(replication.Reason{Code: reasonOver, Text: "the fight is over"})
		}
	}
	for i := range m.closers {
		m.closers[len(m.closers)-1-i]()
	}
}

// pace yields ticks until ctx is done: by the clock, or as fast as possible if only this process has
// clients, and nobody looks.
func (m *match) pace(ctx context.Context) iter.Seq[int] {
	if !m.c.headless || m.c.elsewhere() || m.c.transport != "memory" {
		return loop.Ticks(ctx, m.c.tickRate)
	}
	return func(yield func(int) bool) {
		n := 0
		for ctx.Err() == nil && yield(n) {
			n++
		}
	}
}

// runMatch plays with the server in this process.
func runMatch(ctx context.Context, c *config, s *screen) (*report, error) {
	m := newMatch(c)
	defer m.close()
	if c.record != "" {
		var err error
		if m.tape, err = openTape(c.record); err != nil {
			return nil, err
		}
	}
	if err := m.open(ctx, s); err != nil {
		return nil, err
	}
	if err := m.assemble(ctx); err != nil {
		return nil, err
	}
	m.tape.begin(m)
	s.show(m.second(), m.picture)
	for range m.pace(ctx) {
		if c.ticks > 0 && m.ticks >= c.ticks {
			break
		}
		if m.page != nil {
			m.page.tend(m, s)
		}
		if err := m.step(!m.frozen); err != nil {
			return nil, err
		}
		m.tape.follow(m, s)
		s.show(m.second(), m.picture)
	}
	s.leave()
	result := m.report()
	result.Recording = m.tape.close(float64(m.ticks) / float64(c.tickRate))
	result.Interrupted = ctx.Err() != nil
	if err := m.settle(result); err != nil {
		return nil, err
	}
	m.judge(result)
	return result, nil
}

// second returns the time of the fight.
func (m *match) second() int { return m.ticks / m.c.tickRate }

// assemble waits for as many clients from elsewhere as -clients asks for.
func (m *match) assemble(ctx context.Context) error {
	if m.c.serve == "" {
		return nil
	}
	end := time.Now().Add(m.c.wait)
	for range loop.Ticks(ctx, m.c.tickRate) {
		switch {
		case m.present() >= m.c.clients:
			return nil
		case m.c.wait > 0 && time.Now().After(end):
			return fmt.Errorf("%d of %d clients came within %v", m.present(), m.c.clients, m.c.wait)
		}
		for _, receive := range m.receive {
			receive()
		}
		m.server.Replicate()
	}
	return nil
}

// step is a tick: the server receives packets, plays, and sends; then the clients show a frame. After
// the fight the game is paused and only replication goes on.
func (m *match) step(fight bool) error {
	for _, receive := range m.receive {
		receive()
	}
	if fight {
		m.host.Step()
	}
	m.ticks++
	m.server.Replicate()
	m.truth.record(m.server.Tick(), m.entities(), m.reader)
	if m.ticks%m.c.sendStep() == 0 {
		m.costs.update(m)
	}
	if m.page != nil {
		m.page.show(m)
	}
	for _, client := range m.clients {
		if err := client.frame(time.Second / time.Duration(m.c.tickRate)); err != nil {
			return err
		}
		client.check(m.truth)
	}
	return nil
}

// entities yields what is replicated.
func (m *match) entities() iter.Seq2[replication.NetID, ecs.Entity] {
	return func(yield func(replication.NetID, ecs.Entity) bool) {
		world := &m.host.Game.World
		filter := ecs.All(ecs.ComponentID[replication.Replicated](world))
		query := world.Query(&filter)
		for query.Next() {
			id, ok := m.server.NetID(query.Entity())
			if ok && !yield(id, query.Entity()) {
				query.Close()
				return
			}
		}
	}
}

// settle plays on without changes and over a perfect network until all worlds are equal. Clients that
// run elsewhere compare theirs by themselves, and report it.
func (m *match) settle(result *report) error {
	for _, heal := range m.heal {
		heal()
	}
	m.host.Game.Pause(true)
	if err := m.step(false); err != nil {
		return err
	}
	result.QuietTicks++
	end := m.truth.census()
	final := game.Final{Tick: uint32(m.server.Tick()), Entities: uint32(end.Entities), Sum: end.Sum}
	for _, g := range m.guests {
		if g.client == nil && g.left < 0 {
			_ = replication.SendToClient(g.peer, final) // it fails only for clients that are gone
		}
	}
	limit := m.c.quietTicks()
	if result.Interrupted {
		limit = min(limit, interruptedSeconds*m.c.tickRate)
	}
	for range m.pace(context.Background()) {
		if result.Converged || result.QuietTicks >= limit || m.present() == 0 {
			break
		}
		if err := m.step(false); err != nil {
			return err
		}
		result.QuietTicks++
		// The changes of the last step may not have been sent yet.
		result.Converged = result.QuietTicks >= m.c.sendStep() && m.compare()
	}
	result.Left = len(m.guests) > 0 && m.present() == 0
	return nil
}

// interruptedSeconds is for how long an interrupted server waits for its clients to compare.
const interruptedSeconds = 5

// present returns the number of guests that are there.
func (m *match) present() (n int) {
	for _, g := range m.guests {
		if g.left < 0 {
			n++
		}
	}
	return n
}

// compare reports whether the worlds of all guests that are there equal the server's.
func (m *match) compare() bool {
	all := m.present() > 0
	for _, g := range m.guests {
		if g.left >= 0 {
			continue
		}
		if g.client != nil {
			g.compared, g.equal = true, g.client.equals(m.truth)
		}
		all = all && g.equal
	}
	return all
}

// seconds returns how long a client has been connected.
func (m *match) seconds(g *guest) float64 {
	until := m.ticks
	if g.left >= 0 {
		until = g.left
	}
	return float64(until-g.joined) / float64(m.c.tickRate)
}

// ticksOf converts a duration to ticks.
func (m *match) ticksOf(d time.Duration) float64 { return d.Seconds() * float64(m.c.tickRate) }

// picture returns everything that there is to see.
func (m *match) picture() frame {
	p := &picture{c: m.c, ticks: m.ticks, limit: m.c.ticks}
	p.views = append(p.views, view{"server: " + count(m.server.Stats().Entities, "entity"), &m.host.Game.World})
	if len(m.clients) > 0 {
		p.views = append(p.views, m.clients[0].view(1, m.truth.tick))
	}
	p.figures = m.meter.figures(m.ticks, m.c, &m.costs.cost, m.rows())
	p.figures.elsewhere = m.c.elsewhere()
	return p
}

// view shows a client's world, with the client's number for the title.
func (c *client) view(number int, now replication.Tick) view {
	title := fmt.Sprintf("client %d: %d wrong", number, c.mismatches)
	if behind := int32(now - c.Client.Tick()); c.checks > 0 && behind >= 0 {
		title += ", " + count(int(behind), "tick") + " behind"
	}
	return view{title, &c.world}
}
