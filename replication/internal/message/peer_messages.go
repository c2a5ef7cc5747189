package message

// This file has the server's end of messages and inputs, for one client.

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// PeerMessages sends and receives the messages of one client, and receives its inputs.
type PeerMessages struct {
	Snap     *snapshot.Snapshot
	Schema   *schema.Schema
	Messages *ServerMessages
	Acked    *ackstate.Tracker
	Stats    *counters.PeerCounters
	Down, Up wire.Key            // of packets to the client and from it
	MTU      int                 // of packets to the client
	Send     func(packet []byte) // a packet of messages
	// Handler handles the message that was decoded. It reports whether there is a handler for it,
	// and whether the session continues.
	Handler func(number int) (handled, on bool)

	Out [wire.Channels]OutChannel
	In  [wire.Channels]InChannel // only the first is used

	pending    []handed // reliable pending messages for the client
	unreliable []handed // unreliable ones
	charged    int      // number of unreliable messages that the client is sure to get, or has got in this tick
	size       int      // bytes of these
	deps       []wire.Dependency
	waits      []wire.Dependency // dependencies of a message that are not acknowledged

	Inputs     inputRing
	seen       wire.ReplayWindow // packets from the client
	arrivedAt  delta.Tick        // when the newest of them arrived
	Reported   delta.Tick        // when the last report was sent
	unreported bool              // a packet arrived that no report has acknowledged

	packets, received int // packets and messages since the last tick
}

const (
	// MaxUnreliable is the number of unreliable messages that are sent in a tick at most, and
	// maxUnreliableBytes their size.
	MaxUnreliable      = 256
	maxUnreliableBytes = MaxQueuedBytes / 4
	// MaxPacketsPerTick is the number of packets of messages and inputs that a client may send in a
	// tick, and MaxMessagesPerTick the number of messages. They leave room for a client or a server
	// that paused for a while.
	MaxPacketsPerTick  = 256
	MaxMessagesPerTick = 4096
	// reportTicks is the least number of ticks between reports that need a packet of their own.
	reportTicks = 4
)

// handed is a pending message for the client, or for the viewers of an entity, if the client is one of them.
type handed struct {
	index int32 // in Messenger.Pending
	saw   bool  // the client saw that entity when the game sent the message
}

// HasNew reports whether there are new messages for the client.
func (t *PeerMessages) HasNew() bool { return len(t.pending)+len(t.unreliable) > 0 }

// Enqueue queues a pending message. The error is [ErrBufferFull], or wraps [schema.ErrMessageTooLarge]. Those for the
// viewers of an entity take room when it is known that the client is one of them: what it may not see must not leave it
// less room.
func (t *PeerMessages) Enqueue(pending int) error {
	if err := t.Messages.Messenger.CheckSize(pending, t.MTU); err != nil {
		return err
	}
	d := &t.Messages.Messenger.Pending[pending]
	m, h := &t.Schema.Messages[d.number], handed{index: int32(pending)}
	if d.Viewers {
		h.saw = d.Known && t.Acked.Saw(d.ID)
	} else if !t.reserve(d) {
		return ErrBufferFull
	}
	if m.Reliable {
		t.pending = append(t.pending, h)
	} else {
		t.unreliable = append(t.unreliable, h)
	}
	return nil
}

// Drained reports, once, that a message was refused or dropped for want of room, and that there is room again.
func (t *PeerMessages) Drained() (drained bool) {
	for i := range t.Out {
		drained = t.Out[i].drained() || drained
	}
	return drained
}

// reserve takes the room of a pending message, if there is enough.
func (t *PeerMessages) reserve(d *PendingMessage) bool {
	if m := &t.Schema.Messages[d.number]; m.Reliable {
		return t.Out[m.Channel(true)].expect(d.size, Fragments(d.size, t.MTU))
	}
	if t.charged == MaxUnreliable || t.size+d.size > maxUnreliableBytes {
		return false
	}
	t.charged, t.size = t.charged+1, t.size+d.size
	return true
}

// admits reports whether the client gets a pending message. One for viewers takes its room now, or is dropped.
func (t *PeerMessages) admits(d *PendingMessage, h handed) bool {
	switch {
	case !d.Viewers:
		return true
	case !t.Acked.Views(d.Entity, d.ID, h.saw):
		return false
	case !t.reserve(d):
		t.Stats.MessagesDropped++
		return false
	}
	return true
}

// SendTick sends messages, acks and reports.
func (t *PeerMessages) SendTick() {
	now := t.Snap.Tick
	t.packets, t.received = 0, 0
	if t.Inputs.endTick(now) {
		t.Stats.InputsMissed++
	}
	t.assign()
	t.Acked.NoteSent()
	t.Acked.Structure.Await(now, false)
	if t.Acked.Silence.Mute {
		t.dropUnreliable() // reliable messages wait
	} else {
		t.sendPending()
	}
	if t.Messages.Waits && t.Acked.Structure != nil {
		t.Acked.TrimStructure()
	}
}

// sendPending sends the packets of a tick.
func (t *PeerMessages) sendPending() {
	now := t.Snap.Tick
	// The client completes times by the newest state or the newest of these packets that arrived.
	long := !t.Acked.AnyAcked || now-t.Acked.Recent >= wire.ShortTime
	t.Messages.Messenger.Writer.Begin(t.Down, uint32(now), long, t.MTU)
	t.sendReliable(wire.ChannelImmediate)
	t.sendReliable(wire.ChannelState)
	t.sendUnreliable()
	k := &t.Messages.Messenger.Writer
	if k.Index == 0 && !k.open && (t.mustReport() || t.In[wire.ChannelState].acksLeft > 0) {
		t.startPacket()
	}
	if k.open {
		t.finishPacket()
	}
}

// dropUnreliable drops the unreliable messages of the tick.
func (t *PeerMessages) dropUnreliable() {
	for _, h := range t.unreliable {
		if h.index != processed && t.admits(&t.Messages.Messenger.Pending[h.index], h) {
			t.Stats.MessagesDropped++
		}
	}
	t.endUnreliable()
}

// processed replaces the index of a pending message before it is processed. So if a function of
// the user panics meanwhile, the next Replicate neither sends the message again nor panics again.
const processed = -1

// assign moves reliable pending messages into their channels.
func (t *PeerMessages) assign() {
	m := &t.Messages.Messenger
	for k, h := range t.pending {
		if h.index == processed {
			continue
		}
		t.pending[k].index = processed
		d := &m.Pending[h.index]
		if !t.admits(d, h) {
			continue
		}
		l := &t.Out[m.schema.Messages[d.number].Channel(true)]
		l.cancel(d.size, Fragments(d.size, t.MTU))
		data, bits := m.Encode(d)
		l.push(d.number, t.Snap.Tick, data, bits, Fragments(len(data), t.MTU))
		t.Stats.Messages++
	}
	t.pending = t.pending[:0]
}

// startPacket opens a packet. The first one of a tick has the report and the ack.
func (t *PeerMessages) startPacket() {
	k := &t.Messages.Messenger.Writer
	k.Start()
	var report wire.InputReport
	var ack wire.ChannelAck
	if k.Index == 0 {
		if misses := t.misses(); t.unreported || misses != 0 {
			report = t.report(misses)
		}
		if in := &t.In[wire.ChannelState]; in.acksLeft > 0 {
			in.ack(&ack, t.seen.Newest, k.W.Remaining()/64)
		}
	}
	k.onlyMessages = !report.Present && !ack.Present
	report.Write(&k.W, t.Schema.Input != nil)
	ack.Write(&k.W)
}

// misses returns the ticks that had no input in time, for the report.
func (t *PeerMessages) misses() uint32 {
	if !t.Snap.Opts.Verdicts {
		return 0
	}
	return t.Inputs.misses(t.Snap.Tick)
}

// mustReport reports whether a report must be sent in a packet of its own: about a packet, or about misses, of which
// the client gets each at once, and all of them again as long as a report can have them.
func (t *PeerMessages) mustReport() bool {
	now, in := t.Snap.Tick, &t.Inputs
	if now-t.Reported >= reportTicks && (t.unreported || in.recent(now) && t.misses() != 0) {
		return true
	}
	return t.Snap.Opts.Verdicts && in.missed(now)
}

// report returns the report about the client's packets. misses are the ticks without an input in time.
func (t *PeerMessages) report(misses uint32) (r wire.InputReport) {
	now := t.Snap.Tick
	t.unreported, t.Reported = false, now
	held := uint32(min(now-t.arrivedAt, wire.MaxHeldTicks))
	r = wire.InputReport{Present: true, Echo: uint16(t.seen.Newest), Held: held, Misses: misses}
	r.Gathered, r.Late = t.Inputs.gathered(now), t.Inputs.late
	var of delta.Tick
	if r.Margin, of, r.Judged = t.Inputs.worst(now); r.Judged {
		r.Back = uint8(now + wire.InputTicks - of)
	}
	return r
}

// finishPacket sends the open packet.
func (t *PeerMessages) finishPacket() {
	packet := t.Messages.Messenger.Writer.Finish()
	t.Stats.MessagePackets++
	t.Stats.MessageBytes += uint64(len(packet))
	t.Send(packet)
}

// putMessage appends a message to the open packet, or to a new one. It returns false if it fits into
// none.
func (t *PeerMessages) putMessage(m *WireMessage) bool {
	k := &t.Messages.Messenger.Writer
	if k.open && k.Put(m) {
		return true
	}
	for {
		if k.open {
			if k.onlyMessages && k.count == 0 {
				k.open = false
				return false // with its dependencies it is larger than a packet
			}
			t.finishPacket()
		}
		if k.full() {
			return false
		}
		t.startPacket()
		if k.Put(m) {
			return true
		}
	}
}

// sendReliable sends the dirty messages of a channel.
func (t *PeerMessages) sendReliable(channel int) {
	l := &t.Out[channel]
	if l.Empty() {
		return
	}
	var before *outMessage
	k := &t.Messages.Messenger.Writer
	begun := k.Index
	if t.Acked.AnyAcked {
		l.noteArrival(t.Acked.Recent) // of states
	}
	l.begin(t.Snap.Tick, &t.Acked.Trip)
	defer l.end()
	var stuck *outMessage // those after it wait for it anyway
	if channel == wire.ChannelState && l.stuck(l.head(), len(t.unmet(l, l.head()))) {
		stuck = l.head()
	}
	for id := l.First; id != l.Next; id++ {
		m := l.at(id)
		if m.fragment != wire.Unfragmented && k.Index-begun >= MaxFragmentPackets {
			return
		}
		if !l.mustSend(m) && m != stuck {
			before = m
			continue
		}
		w := WireMessage{
			Number: int(m.number), Channel: channel, ID: id,
			Long: t.Schema.Messages[m.number].Long, Fragment: m.fragment,
			Tick: m.tick, Waits: channel == wire.ChannelState,
		}
		if w.Waits && m.fragment != wire.MoreFragments {
			if !m.known && !t.findDependencies(l, m, before) {
				t.Acked.Structure.Await(m.tick, true)
				return // the message waits, and so do those after it
			}
			w.Deps = t.unmet(l, m)
		}
		w.Data, w.Bits = l.bits.at(m.place, wire.ByteSize(int(m.bits))), int(m.bits)
		if !t.putMessage(&w) {
			return
		}
		if m.times > 0 {
			t.Stats.MessagesResent++
		}
		l.noteSent(id, len(w.Deps))
		before = m
	}
}

// unmet returns the dependencies of a message that the client has not acknowledged.
func (t *PeerMessages) unmet(l *OutChannel, m *outMessage) []wire.Dependency {
	t.waits = t.waits[:0]
	if m.known {
		t.waits = t.Acked.StillWaits(l.deps.at(m.deps, int(m.count)), t.waits)
	}
	return t.waits
}

// findDependencies sets the dependencies of a message. It returns false if they are too many to send, or have not all
// been sent.
func (t *PeerMessages) findDependencies(l *OutChannel, m, before *outMessage) bool {
	if t.Acked.Structure == nil {
		m.known = true
		return true
	}
	if before != nil && before.known && before.tick == m.tick {
		m.dependsLike(before)
		return true
	}
	deps, unsent, ok := t.Acked.Dependencies(m.tick, t.deps[:0], maxDependencies)
	t.deps = deps
	if unsent || !ok {
		return false
	}
	l.depend(m, deps)
	return true
}

// sendUnreliable sends the unreliable messages of the tick.
func (t *PeerMessages) sendUnreliable() {
	m := &t.Messages.Messenger
	known, ok := false, false
	for k, h := range t.unreliable {
		if h.index == processed {
			continue
		}
		t.unreliable[k].index = processed
		d := &m.Pending[h.index]
		if !t.admits(d, h) {
			continue
		}
		w := WireMessage{Number: d.number, Channel: -1, Tick: t.Snap.Tick, Waits: m.schema.Messages[d.number].Waits()}
		w.Data, w.Bits = m.Encode(d)
		if w.Waits {
			if !known && t.Acked.Structure == nil {
				t.deps, known, ok = t.deps[:0], true, true
			}
			if !known {
				t.deps, _, ok = t.Acked.Dependencies(t.Snap.Tick, t.deps[:0], maxDependencies)
				known = true
			}
			if w.Deps = t.deps; !ok {
				t.Stats.MessagesDropped++
				continue
			}
		}
		if !t.putMessage(&w) {
			t.Stats.MessagesDropped++
			continue
		}
		t.Stats.Messages++
	}
	t.endUnreliable()
}

// endUnreliable ends the unreliable messages of the tick.
func (t *PeerMessages) endUnreliable() { t.unreliable, t.charged, t.size = t.unreliable[:0], 0, 0 }

// ReceivePacket reads a packet of messages or inputs.
func (t *PeerMessages) ReceivePacket(packet, body []byte) error {
	var h wire.MessageHeader
	if t == nil {
		return wire.ErrUnexpected // the schema has neither messages nor inputs
	}
	rest, ok := h.Parse(body, t.seen.Near())
	if !ok {
		return wire.ErrMalformed
	}
	if err := h.Check(t.Up); err != nil {
		return err
	}
	if !t.Up.Matches(packet, 0, h.Time) {
		return wire.ErrChecksum
	}
	if !t.seen.Believes(&h, t.seen.Newest, t.seen.Any, !t.Up.Off) {
		return wire.ErrStale
	}
	if t.packets == MaxPacketsPerTick {
		t.Stats.Floods++
		return ErrFlood
	}
	t.packets++
	if h.Kind == wire.KindInputs {
		return t.receiveInputs(&h, rest)
	}
	k := &t.Messages.Messenger.Parser
	k.Header = h
	if err := k.Parse(rest, &t.In); err != nil {
		return err
	}
	if !t.seen.Fresh(h.Time, k.index) {
		return wire.ErrStale
	}
	for i := range k.acks {
		if a := &k.acks[i]; a.Present && !t.Out[i].acceptable(a) {
			t.Stats.RefusedAcks++
			return wire.ErrMalformed
		}
	}
	if t.received+len(k.Messages) > MaxMessagesPerTick {
		t.Stats.Floods++
		return ErrFlood
	}
	t.received += len(k.Messages)
	t.noteReceived(&h)
	t.seen.Add(h.Time, k.index)
	for i := range k.acks {
		if a := &k.acks[i]; a.Present {
			if t.Out[i].ack(a, t.Snap.Tick) && !t.Acked.AnyAcked {
				t.Acked.Trip.Sample(t.Snap.Tick + 1 - t.Out[i].latest) // no state was sent whose ack shows it
			}
		}
	}
	t.handleAll(k.Messages)
	return nil
}

// ResolveAll acknowledges every message that was sent, for a client in this process.
func (t *PeerMessages) ResolveAll() {
	for i := range t.Out {
		l := &t.Out[i]
		l.ack(&wire.ChannelAck{Received: uint16(t.Snap.Tick), Next: uint16(l.Unsent)}, t.Snap.Tick)
	}
}

// noteReceived notes that a packet arrived, for the report.
func (t *PeerMessages) noteReceived(h *wire.MessageHeader) {
	if !t.seen.Any || int32(h.Time-t.seen.Newest) > 0 {
		t.seen.Reach(h.Time)
		t.arrivedAt = t.Snap.Tick + 1 // the next Replicate is the first that can report it
	}
	t.unreported = true
	for i := range t.Out {
		t.Out[i].retrySoon()
	}
}

// receiveInputs reads the bits of a packet of inputs.
func (t *PeerMessages) receiveInputs(h *wire.MessageHeader, rest []byte) error {
	if t.Schema.Input == nil {
		return wire.ErrUnexpected
	}
	var had *inputRing
	if h.Stamped {
		had = &t.Inputs
	}
	rows, err := t.Messages.Messenger.readInputs(rest, t.Snap.Tick+1, had)
	if err != nil {
		return err
	}
	t.noteReceived(h)
	for i := range rows {
		if rows[i].acked = t.Acked.Recent; !t.Acked.AnyAcked {
			rows[i].acked = rows[i].stamp.Tick
		}
		switch t.Inputs.take(&rows[i], t.Snap.Tick) {
		case inputInTime:
			t.Stats.Inputs++
		case inputLate:
			t.Stats.InputsLate++
		case inputEarly:
			t.Stats.InputsEarly++
		}
	}
	return nil
}

// handleAll handles the messages of a packet, and reliable ones that waited for them.
func (t *PeerMessages) handleAll(messages []StagedMessage) {
	for i := range messages {
		if m := &messages[i]; m.Channel >= 0 {
			t.In[wire.ChannelState].take(m, nil, 0)
		}
	}
	t.Messages.Handling = true
	defer func() { t.Messages.Handling = false }()
	for in := &t.In[wire.ChannelState]; ; {
		next, ok := in.nextInOrder(t.Schema.Messages)
		if !ok {
			break
		}
		number := next.last.number
		if !t.Messages.Messenger.decodeNext(in, &next) {
			t.Stats.MessagesMalformed++
			continue
		}
		if !t.handle(number) {
			return // disconnected
		}
	}
	for i := range messages {
		if m := &messages[i]; m.Channel < 0 {
			t.Messages.Messenger.decode(m.Number, m.row)
			if !t.handle(m.Number) {
				return
			}
		}
	}
}

// handle calls the handler of the message that was decoded, and reports whether the session continues.
func (t *PeerMessages) handle(number int) bool {
	handled, on := t.Handler(number)
	if !handled {
		t.Stats.MessagesUnhandled++
	}
	return on
}
