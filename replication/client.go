package replication

import (
	"errors"
	"fmt"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Client makes a world follow a server's. It is for one goroutine at a time.
type Client struct {
	diverged struct { // the same divergence is the same pointer
		inside *apply.Divergence
		public *Divergence
	}
	schema   *schema.Schema
	stats    counters.ClientCounters
	sends    *session.Outlet
	session  session.ClientSession
	recv     receive.Receiver
	apply    apply.Applier
	clock    clock.Ticks
	messages *message.ClientMessages // nil: the schema has neither messages nor inputs
	calls    exclusive.Guard
	attached []func(dt time.Duration) // called in Frame, when the world is up to date
	ending   []func()                 // called in Close and Detach, before the world changes
	watchers seam.Watchers
	received []func(packet []byte, err error) // called for each packet
}

// NewClient returns a client that makes the world follow a server's. The schema must equal the server's. NewClient
// freezes it. A transport's Dial gives the client its send function, or [Client.SetSend].
//
// Replicas, the client's copies of the server's entities, carry the component [Replica]. The user may add components to
// them that are not in the schema, and remove replicas or their components: they stay removed until the server spawns
// or adds them anew. After a reset of the world, the next Frame fills it again with all replicas, including those. All
// this holds for resources, too; one that the user has already is taken over.
//
// Panics if the world is locked, or if the world or the schema is nil.
func NewClient(world *ecs.World, schema *Schema, opts ...ClientOption) *Client {
	checkWorld("NewClient", world)
	if schema == nil {
		panic("replication: NewClient needs a schema: make one with NewSchema")
	}
	if world.IsLocked() {
		panic("replication: NewClient on a locked world: make clients outside of queries, since they " +
			"register components")
	}
	o := config.ClientOptions{
		EndOptions:  config.EndOptions{MTU: defaultMTU, Timeout: -1},
		MaxEntities: 1 << 20,
	}
	applyOptions("NewClient", opts, func(opt ClientOption) { opt.ApplyToClient(&o) })
	if o.MTU < minClientMTU {
		panic(fmt.Sprintf("replication: NewClient: an MTU of %d bytes: a client needs %d or more", o.MTU, minClientMTU))
	}
	types := &schema.raw
	types.Freeze()
	slots := snapshot.SlotsFor(o.MaxEntities, len(types.Conditions), archeutil.ResourcesOf(types).Any)
	c := &Client{schema: types}
	c.clock.Rate = config.DefaultTickRate
	c.apply.Calls = &c.calls
	sends, send := session.Lend(&c.calls, func(n int) { c.watchers.Note(seam.Sent, n) }, notAttached)
	c.sends = sends
	c.session = session.NewClientSession(&o, clientErrors, send, &c.stats, types.Hash(), slots)
	c.apply.Init(world, types, ecs.ComponentID[Replica](world), &c.recv, &c.stats, slots, o.SpawnWith)
	c.recv = receive.NewReceiver(types, &c.stats, slots, c.apply.View.RelationTypes())
	if types.UsesMessages() {
		links := message.ClientLinks{
			Clock: &c.clock, Stats: &c.stats, Transmit: c.session.Transmit, Ready: c.recv.Ready,
		}
		c.messages = message.NewClientMessages(links, types, &c.apply, o.MTU, slots)
	}
	return c
}

// notAttached is the send function of a client that has none yet.
func notAttached([]byte) error {
	return errors.New("the client has no send function yet: dial a transport, or call SetSend")
}

// SetSend sets the function that sends a packet to the server, in place of the one before. Transports call it in Dial.
// Until then the client sends nothing: its packets count as refused, and [Client.Err] reports that. The client calls
// send in Frame, Disconnect and Close only; the packet belongs to the client again when send returns. For another
// server, call [Client.Reconnect] as well. Panics if send is nil.
func (c *Client) SetSend(send func(packet []byte) error) {
	defer c.guard().Leave(c.guard().Enter(exclusive.SetSend))
	if send == nil {
		panic("replication: Client.SetSend needs a function that sends a packet to the server")
	}
	c.sends.Function = send
}

// guard returns what finds two goroutines in the client, and panics if there is no client.
func (c *Client) guard() *exclusive.Guard {
	if c == nil || c.apply.View.World == nil {
		panic("replication: there is no client: NewClient makes one")
	}
	return &c.calls
}

// mustExist is for calls that only read.
func (c *Client) mustExist() { c.guard().Check() }

// Stats returns the client's counters.
func (c *Client) Stats() ClientStats {
	c.mustExist()
	stats := ClientStats(c.stats)
	stats.Pace, stats.LastSendError = c.clock.Pace(), c.sends.Last
	rate := int(c.clock.Rate)
	stats.RoundTrip, stats.Jitter = durationOf(c.clock.RoundTrip(), rate), durationOf(c.clock.Jitter, rate)
	if c.messages != nil && c.messages.InputDelay.Known {
		stats.InputDelay = durationOf(c.messages.InputDelay.Ticks(&c.clock), rate)
	}
	stats.SendInterval, stats.Compact = int(c.recv.Interval), c.recv.Compact != nil
	return stats
}

// Receive takes a packet from the server. It only decodes the packet: the world changes in [Client.Frame]. The packet
// is not kept. Errors are counted in [Client.Stats], and the connection continues: [ErrMalformed], [ErrChecksum],
// [ErrOverwritten], [ErrStale], [ErrUnexpected], [ErrMissingBaseline] or [ErrMissingModel]. Panics in a hook and in a
// message handler.
func (c *Client) Receive(packet []byte) error {
	c.mustExist()
	c.apply.Hooks.NotInHook("Receive")
	if c.messages != nil && c.messages.Handling {
		panic("replication: Receive in a message handler: keep the packet until Frame returns")
	}
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientReceive))
	c.watchers.Note(seam.ReceiveBegins, len(packet))
	err := wire.Explain(c.receive(packet), packet)
	c.watchers.Note(seam.ReceiveEnds, len(packet))
	for _, fn := range c.received {
		fn(packet, err)
	}
	switch {
	case err == nil:
		c.session.Received()
	case errors.Is(err, wire.ErrStale):
		c.stats.Duplicates++
	case errors.Is(err, wire.ErrMissingBaseline):
		c.session.Received()
		c.stats.MissingBaselines++
	case errors.Is(err, wire.ErrMissingModel):
		c.session.Received()
		c.stats.MissingModels++
	case errors.Is(err, wire.ErrOverwritten):
		c.stats.Overwritten++
		fallthrough
	default:
		c.stats.RefusedPackets++
	}
	return err
}

func (c *Client) receive(packet []byte) error {
	if body := wire.OpenHandshake(packet); body != nil {
		welcome, err := c.session.ReceiveAnswer(body, c.schema.FullText)
		if welcome != nil {
			c.begin(welcome)
		}
		return err
	}
	if !c.session.Open() {
		return wire.ErrUnexpected
	}
	if c.session.ReceiveDisconnect(packet) {
		return nil
	}
	if hashes, err := c.apply.Hashes.ReceiveHashes(packet, c.session.Down); hashes {
		return err
	}
	if c.session.OfFormer(packet) {
		return wire.ErrStale
	}
	body := c.session.Down.Body(packet)
	if body != nil && wire.KindOf(body) == wire.KindMessages {
		if c.messages == nil {
			return wire.ErrUnexpected
		}
		return c.messages.Receive(packet, body, c.session.Down, c.recv.NearTick)
	}
	if body == nil || !wire.IsState(body) {
		return wire.ErrMalformed
	}
	h, err := c.recv.Receive(packet, body, c.session.Down)
	switch {
	case errors.Is(err, receive.ErrOutdated):
		c.apply.NoteLeftover()
		c.session.Leave()
		return wire.ErrStale
	case receive.StateTaken(err):
		c.clock.Arrive(h.Tick)
		c.session.StateCame(&h, c.recv.Acked())
	}
	return err
}

// Frame brings the client's time and world up to date. Call it once per frame, at any frame rate, on the goroutine that
// owns the world, after [Client.Receive] and before drawing. dt is the time since the last call.
//
// First, every entity, and every [Group], goes from one state of the server to a later one. Then Frame calls the hooks
// (see [OnSpawn]) and the functions of [OnServerMessage]. What is attached to the client follows, such as
// interpolation, then the function of [OnInput]. At last, Frame sends packets to the server.
//
// A pause counts as at most a second of waiting for the server. A negative dt counts as 0 and in [ClientStats]. If dt
// has another unit, ClientStats.Pace is far from 1.
//
// The error is final, until [Client.Reconnect]: a [*SchemaError], one that names another protocol version, or a
// [*DisconnectError] if one of the ends has ended the connection. All other errors are recovered from and counted in
// [Client.Stats].
//
// Panics if the world is locked, in a hook, in a message handler and in the function of OnInput.
func (c *Client) Frame(dt time.Duration) error {
	c.mustExist()
	c.apply.Hooks.NotInHook("Frame")
	if c.apply.View.World.IsLocked() {
		panic("replication: Frame on a locked world: call it outside of queries, since it adds and removes entities")
	}
	if c.messages != nil && c.messages.Handling {
		panic("replication: Frame in a message handler, which runs in a Frame")
	}
	c.watchers.Note(seam.FrameBegins, 0)
	defer c.watchers.Note(seam.FrameEnds, 0) // when others may read again
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientFrame))
	c.advance(dt)
	return c.show(dt)
}

// advance lets time pass.
func (c *Client) advance(dt time.Duration) {
	if dt < 0 {
		c.stats.ClockSteps++
		dt = 0
	}
	c.clock.StartFrame(dt)
	c.followClock()
}

// show brings the world up to date and answers the server.
func (c *Client) show(dt time.Duration) error {
	ticks := min(c.clock.Passed(), c.clock.Rate) // of a pause, no more than a second
	c.apply.Show(c.session.Complete, ticks)
	c.recv.Refresh()
	if c.messages != nil {
		c.messages.HandleAll(ticks)
	}
	for _, fn := range c.attached {
		fn(dt)
	}
	c.sendToServer(ticks)
	c.clock.EndFrame()
	c.followClock()
	return c.session.Err
}

// sendToServer is the part of Frame that follows when the world is up to date.
func (c *Client) sendToServer(ticks uint32) {
	t := c.messages
	if t != nil && c.session.Open() {
		t.GiveInputs()
	}
	c.answerServer(ticks)
	if !c.session.Open() {
		return
	}
	// Without a checksum, the server must not take messages for what begins the session.
	if t != nil && (c.recv.AnyState || !c.session.Up.Off) {
		t.SendTick(c.session.Up)
	}
}

// answerServer sends what the server has to know: hellos, then acks.
func (c *Client) answerServer(ticks uint32) {
	if c.session.Over() {
		return
	}
	switch send := c.session.Step(ticks); {
	case c.session.Asks():
		if send {
			c.session.SendHello()
		}
	case !c.recv.NewAcks && (c.session.InForce || !send):
	case !c.recv.NewAcks && c.session.Waited >= session.IntroduceEvery: // an ack was not enough
		c.session.Confirm()
		c.session.Transmit(c.recv.WriteAcks(c.session.AckKey())) // it shows that the client is still there
	default:
		c.session.Transmit(c.recv.WriteAcks(c.session.AckKey()))
	}
}

// Status returns the status of the client's connection.
func (c *Client) Status() Status {
	c.mustExist()
	return Status(c.session.Status())
}

// Err returns what keeps the client from being connected: what [Client.Frame] returns once the connection has ended,
// or, while the status is [StatusConnecting] or [StatusReconnecting], if the send function refuses packets, an error
// that wraps its latest one. The latter is not final. It is nil otherwise, also while no answer arrives.
func (c *Client) Err() error {
	c.mustExist()
	if err := c.sends.Refusal(); err != nil && (c.Status() == StatusConnecting || c.Status() == StatusReconnecting) {
		return fmt.Errorf("replication: the client can't reach the server: %w", err)
	}
	return c.session.Err
}

// fail ends the connection for a reason of the transport's.
func (c *Client) fail(why error) {
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientDisconnect))
	c.session.Fail(fmt.Errorf("replication: the client can't reach the server: %w", why))
}

// Complete reports whether everything has arrived that the client may see of the server's world as it was when the
// session began: after the next Frame, the game can be shown.
func (c *Client) Complete() bool {
	c.mustExist()
	return c.session.Open() && c.session.Complete
}

// Reconnect begins a new session, whatever the state of the present one. After a timeout of either end, the client does
// so by itself.
//
// Replicas stay in the world until the new session shows more. If the server is still the same [Server], every replica
// that it shows again remains the same entity, with everything that the user added to it; the others are removed as
// soon as the session is [Client.Complete]. If it is another server, all replicas are removed when its first state
// arrives.
//
// Panics if the client is closed.
func (c *Client) Reconnect() {
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientReconnect))
	c.session.Reconnect()
}

// SetJoinData replaces the data of [WithJoinData] in sessions that the client asks for from now on; [Client.Reconnect]
// asks for one. It copies the data, and panics at the same lengths.
func (c *Client) SetJoinData(data []byte) {
	defer c.guard().Leave(c.guard().Enter(exclusive.SetJoinData))
	c.session.SetJoinData(data)
}

// begin starts a session. Nothing of those before is a baseline of it.
func (c *Client) begin(m *wire.Welcome) {
	c.session.Begin(m, c.recv.AnyState)
	c.apply.BeginShowing(m.Instance, c.recv.Outdated(m.Tick))
	c.recv.Begin(m)
	c.clock.Begin(m.Tick, uint32(m.TickRate))
	if c.messages != nil {
		c.messages.Reset()
	}
}

// resume begins the session of a welcome, whoever asked for it. If continues is true, the session begins with the state
// in which the present one ended.
func (c *Client) resume(packet []byte, continues bool) error {
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientReconnect))
	welcome, err := c.session.Adopt(packet)
	if err != nil {
		return err
	}
	if !continues || !c.apply.Continues(welcome.Instance) {
		c.begin(welcome)
		return nil
	}
	c.session.Begin(welcome, c.recv.AnyState)
	c.recv.Continue(welcome)
	if c.messages != nil {
		c.messages.Reset()
	}
	return nil
}

// Disconnect ends the connection and sends the server the reason, in packets that are sent at once. The world stays as
// it is: [Client.Close] removes the replicas. Frame returns a [*DisconnectError] from then on, until
// [Client.Reconnect].
func (c *Client) Disconnect(r Reason) {
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientDisconnect))
	c.session.Disconnect(uint8(r.Code), r.Text)
}

// Close ends the connection as [Client.Disconnect] does, if it has not ended, and removes all replicas and replicated
// resources from the world: [Client.Detach] leaves them there. Reconnect panics afterwards.
//
// Panics if the world is locked, and in a hook.
func (c *Client) Close() {
	c.mustExist()
	c.apply.Hooks.NotInHook("Close")
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientClose))
	c.end("Close", c.apply.RemoveAll)
}

// Detach ends the connection as [Client.Close] does, but leaves the world as it is: replicas become the user's own
// entities, without [Replica] and NetID, and resources stay. Only entities that the server has removed and package
// interpolation still shows are removed, see [OnDespawn].
//
// Panics if the world is locked, and in a hook.
func (c *Client) Detach() {
	c.mustExist()
	c.apply.Hooks.NotInHook("Detach")
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientDetach))
	c.end("Detach", c.apply.Detach)
}

// end ends the connection for good. leave is what happens to the world.
func (c *Client) end(method string, leave func()) {
	if c.apply.View.World.IsLocked() {
		panic("replication: " + method + " on a locked world: call it outside of queries, since it removes entities")
	}
	c.session.Disconnect(uint8(ReasonClosed), "")
	for _, fn := range c.ending {
		fn()
	}
	c.ending = nil
	leave()
	c.session.Close()
	if c.messages != nil {
		clear(c.messages.Handlers)
		c.messages.Drained = nil
		c.messages.Closed = true // package interpolation may have some waiting
	}
}
