package web

import (
	"context"
	_ "embed"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

//go:embed page.js
var script string

// A browser whose sockets are connected to a server of the test.
const browser = `
	globalThis.location = { href: "http://game.example/index.html?x#y" }
	globalThis.answer = { status: 200, text: "{}" }
	globalThis.fetch = async url => {
		if (answer.status == 0) throw new TypeError("failed to fetch")
		globalThis.fetched = url
		return { ok: answer.status == 200, status: answer.status, text: async () => answer.text }
	}
	globalThis.WebSocket = class {
		constructor(url) { this.url = url; this.bufferedAmount = 0; globalThis.fake = this; setTimeout(() => this.onopen()) }
		send(p) { if (this.closed) throw new Error("closed"); toServer(p.slice()) }
		deliver(p) { if (!this.closed) this.onmessage({ data: p.slice().buffer }) }
		close() { this.break("") }
		break(reason) { if (!this.closed) { this.closed = true; setTimeout(() => this.onclose({ code: 1006, reason })) } }
	}
	globalThis.FakeTransport = class {
		constructor(url, options) {
			this.url = url; this.options = options; globalThis.fake = this
			this.ready = Promise.resolve()
			this.closed = new Promise(r => { this.done = r })
			this.datagrams = {
				maxDatagramSize: 1215,
				readable: new ReadableStream({ start: c => { this.in = c } }),
				writable: new WritableStream({ write: p => { toServer(p) } }),
			}
		}
		deliver(p) { if (!this.over) this.in.enqueue(p.slice()) }
		close() { this.break("") }
		break(reason) { if (!this.over) { this.over = true; this.in.close(); this.done({ reason }) } }
	}
`

type position struct {
	X float32 `repl:"range=-100:100,step=0.01"`
}

func schema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[position](s)
	return s
}

// game is a server, and a client in the browser.
type game struct {
	t      *testing.T
	server *replication.Server
	move   func()
	peer   *replication.Peer
	up     [][]byte
	client *replication.Client
	conn   *Conn
	err    error // of Frame
}

func newGame(t *testing.T, url string) *game {
	js.Global().Call("eval", browser+script)
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	entity := world.NewEntity(ecs.ComponentID[position](&world), ecs.ComponentID[replication.Replicated](&world))
	g := &game{t: t, move: func() { (*position)(world.Get(entity, ecs.ComponentID[position](&world))).X += 0.01 }, server: replication.NewServer(&world, schema()), client: replication.NewClient(&clientWorld, schema())}
	g.connect()
	js.Global().Set("toServer", js.FuncOf(func(_ js.Value, args []js.Value) any {
		packet := make([]byte, args[0].Length())
		js.CopyBytesToGo(packet, args[0])
		g.up = append(g.up, packet)
		return nil
	}))
	var err error
	g.conn, err = Dial(url, g.client)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.conn.Close()) })
	return g
}

func (g *game) connect() {
	var peer *replication.Peer
	peer = g.server.Connect(func(packet []byte) error {
		if peer != g.peer {
			return errClosed
		}
		page := js.Global().Get("Uint8Array").New(len(packet))
		js.CopyBytesToJS(page, packet)
		if socket := js.Global().Get("fake"); socket.Truthy() {
			socket.Call("deliver", page)
		}
		return nil
	}, replication.WithoutChecksum())
	g.peer = peer
}

func (g *game) until(done func() bool) {
	g.t.Helper()
	for range 5000 {
		for _, p := range g.up {
			_ = g.peer.Receive(p)
		}
		g.up = g.up[:0]
		g.move()
		g.server.Replicate()
		g.conn.Poll()
		g.err = g.client.Frame(time.Second / 60)
		if done() {
			return
		}
		time.Sleep(time.Millisecond) // JavaScript's turn
	}
	g.t.Fatalf("it did not happen: %v %v %+v", g.client.Status(), g.client.Err(), g.conn.Stats())
}

func (g *game) connected() bool { return g.client.Status() == replication.StatusConnected }

func TestPageWebSocket(t *testing.T) {
	g := newGame(t, "/play")
	g.until(g.connected)
	require.Equal(t, "ws://game.example/play", js.Global().Get("fake").Get("url").String())
	require.Equal(t, "http://game.example/play?info", js.Global().Get("fetched").String())
	before := g.conn.Stats()
	g.until(func() bool { return g.conn.Stats().Received > before.Received+50 })

	js.Global().Get("fake").Set("bufferedAmount", 1<<20)
	g.until(func() bool { return g.conn.Stats().OutboxFull > 3 })
	require.ErrorContains(t, g.client.Stats().LastSendError, "too slow")
	js.Global().Get("fake").Set("bufferedAmount", 0)

	js.Global().Get("fake").Call("break", "the server is closed")
	g.connect()
	g.until(func() bool { return g.conn.Stats().Dials == 2 && g.connected() && g.peer.Connected() })
	require.EqualValues(t, 1, g.conn.Stats().Failures)
	require.NoError(t, g.err)
}

func TestPageWebTransport(t *testing.T) {
	page := js.Global()
	page.Set("isSecureContext", true)
	defer page.Delete("isSecureContext")
	defer page.Delete("WebTransport")
	g := newGame(t, "https://other.example/play")
	page.Call("eval", `WebTransport = FakeTransport; answer.text = '{"port": 9000, "hash": "AQID"}'`)
	g.until(g.connected)
	require.Equal(t, "https://other.example:9000/play", page.Get("fake").Get("url").String())
	pin := page.Get("fake").Get("options").Get("serverCertificateHashes").Index(0)
	require.Equal(t, "sha-256", pin.Get("algorithm").String())
	require.Equal(t, 3, pin.Get("value").Index(2).Int())
	before := g.conn.Stats()
	g.until(func() bool { return g.conn.Stats().Received > before.Received+50 })

	// A client that is sent a reason as the last datagram of a session learns it.
	g.peer.Disconnect(replication.Reason{Code: replication.ReasonKicked, Text: "no cheating"})
	page.Get("fake").Call("break", "")
	g.until(func() bool { return g.err != nil })
	require.ErrorContains(t, g.err, "no cheating")
}

func TestPageFallsBackToWebSocket(t *testing.T) {
	page := js.Global()
	page.Set("isSecureContext", true)
	defer page.Delete("isSecureContext")
	defer page.Delete("WebTransport")
	g := newGame(t, "/play")
	page.Call("eval", `answer.text = '{"port": 9000}'
		WebTransport = class extends FakeTransport { constructor(u, o) { super(u, o); this.ready = Promise.reject(new Error("no UDP")) } }`)
	g.until(g.connected)
	require.Equal(t, "ws://game.example/play", page.Get("fake").Get("url").String())
}

func TestPageMistakes(t *testing.T) {
	page := js.Global()
	fails := func(status int, text string) string {
		g := newGame(t, "/play")
		page.Get("answer").Set("status", status)
		page.Get("answer").Set("text", text)
		g.until(func() bool { return g.err != nil })
		return g.err.Error()
	}
	require.Contains(t, fails(403, `pages of "x" may not connect`), `refuses this client: pages of "x" may not connect`)
	require.Contains(t, fails(404, "404 page not found"), "http://game.example/play there is no game")
	require.Contains(t, fails(200, "<html>"), "there is no game")
	g := newGame(t, "/play")
	page.Get("answer").Set("status", 0)
	g.until(func() bool {
		return g.client.Err() != nil && strings.Contains(g.client.Err().Error(), "is the server running?")
	})
	require.NoError(t, g.err)
	page.Get("answer").Set("status", 200) // it is, now
	g.until(g.connected)

	_, err := Dial("file:///play", g.client)
	require.ErrorContains(t, err, "give the path of the server's handler")
	page.Delete("archeReplicate")
	_, err = Dial("/play", g.client)
	require.ErrorContains(t, err, `<script src="/play?js"></script>`)
	require.NotContains(t, err.Error(), "\n")
}

func TestPageDoesNotAllocate(t *testing.T) {
	g := newGame(t, "/play")
	g.until(g.connected)
	d, err := newDialer("/play")
	require.NoError(t, err)
	d.setMTU = func(int) {}
	c, err := d.dial(t.Context())
	require.NoError(t, err)
	s := c.(*socket)
	js.Global().Set("toServer", js.Global().Call("eval", "() => {}"))
	packet := make([]byte, 300)
	for i := range packet {
		packet[i] = byte(i)
	}
	require.NoError(t, s.Write(packet))
	deliver := js.Global().Call("eval", "() => fake.deliver(Uint8Array.from({ length: 300 }, (_, i) => i))")
	deliver.Invoke()
	require.Equal(t, packet, s.Pull())
	require.Nil(t, s.Pull())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		deliver.Invoke()
		deliver.Invoke()
		s.Pull()
		s.Pull()
		s.Pull()
		_ = s.Write(packet)
	}))
	for range 1030 {
		deliver.Invoke()
	}
	require.EqualValues(t, 6, s.Dropped())
	s.Close(nil)
	_, err = s.Read()
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, s.Write(packet), errClosed)
}

func TestPageFrames(t *testing.T) {
	newGame(t, "/play")
	js.Global().Call("eval", `
		globalThis.document = {
			hidden: false, addEventListener: (_, f) => { globalThis.changed = f },
			removeEventListener: (_, f) => { if (changed === f) globalThis.changed = null },
		}
		globalThis.complaints = 0
		console.error = () => complaints++ // Go's runtime, of a function that was released
		globalThis.drawn = []
		globalThis.requestAnimationFrame = f => drawn.push(f)
		globalThis.cancelAnimationFrame = () => drawn.pop()
		globalThis.redraw = () => { const all = drawn; drawn = []; all.forEach(f => f()) }
	`+script)
	defer js.Global().Call("eval", "delete globalThis.document; delete globalThis.requestAnimationFrame")
	n := 0
	time.AfterFunc(5*time.Millisecond, func() { js.Global().Call("redraw") })
	for dt := range Frames(t.Context()) {
		if n == 0 {
			require.Zero(t, dt)
		} else {
			require.Positive(t, dt)
		}
		if n++; n == 4 {
			break
		}
		time.AfterFunc(5*time.Millisecond, func() { js.Global().Call("redraw") })
		if n == 3 { // the page is hidden: nothing is drawn, and a timer goes on
			js.Global().Get("document").Set("hidden", true)
		}
		if n == 1 {
			require.Zero(t, js.Global().Get("drawn").Length())
		}
	}
	require.Equal(t, 4, n)

	// Then the page calls nothing any more.
	require.True(t, js.Global().Get("changed").IsNull())
	js.Global().Get("document").Set("hidden", false)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(5*time.Millisecond, cancel)
	for range Frames(ctx) {
		t.Fatal("nothing was drawn")
	}
	js.Global().Call("redraw")
	require.Zero(t, js.Global().Get("complaints").Int())

	var used js.Value // what a page keeps of a loop is released with it
	frames := js.Global().Get("archeReplicate").Get("frames")
	spy := js.FuncOf(func(_ js.Value, args []js.Value) any { used = args[0]; return frames.Invoke(args[0]) })
	defer spy.Release()
	js.Global().Get("archeReplicate").Set("frames", spy)
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	for range Frames(ctx) {
		t.Fatal("it has ended")
	}
	used.Invoke()
	require.Equal(t, 1, js.Global().Get("complaints").Int())
}
