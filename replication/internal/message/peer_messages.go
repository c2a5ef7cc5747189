package message

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A PeerTalk is what the server says to one client, and hears from it, beside the state of the world.
type PeerTalk struct {
	Snap     *snapshot.Snapshot
	Schema   *schema.Schema
	Messages *ServerMessages
	Acked    *ackstate.Tracker
	Stats    *counters.PeerCounters
	Down, Up wire.Key            // of packets to the client and from it
	Send     func(packet []byte) // a packet of messages
	// Handler hands over the message that was opened. It reports whether there is a function for it, and whether the session
	// goes on.
	Handler func(number int) (handled, on bool)

	Out [wire.Channels]OutLane
	In  [wire.Channels]InLane // only the first is used

	pending []int32 // drafts that the client is to get
	loose   []int32 // those of them that are unreliable
	size    int     // bytes of unreliable messages
	deps    []wire.Dependency
	waits   []wire.Dependency // that of a message is not settled

	Inputs   inputRing
	seen     wire.ReplayWindow // packets from the client
	came     delta.Tick        // when the newest of them did
	Reported delta.Tick        // when the client was last told so
	unsaid   bool              // something came that the client was not told of

	packets, received int // packets and messages that came since the last tick
}

const (
	// MaxLoose is how many unreliable messages go out in a tick at most, and maxLooseBytes their size.
	MaxLoose      = 256
	MaxLooseBytes = MaxQueuedBytes / 4
	// MaxPacketsPerTick is how many packets of messages and inputs a client may send in a tick, and maxMessagesPerTick how many
	// messages. They leave room for a client or a server that stood still for a while.
	MaxPacketsPerTick  = 256
	MaxMessagesPerTick = 4096
	// reportTicks is how often a client is told how its inputs fare, at most, unless there is a packet for it anyway.
	reportTicks = 4
)

// Speaks reports whether there are new messages for the peer.
func (t *PeerTalk) Speaks() bool { return len(t.pending)+len(t.loose) > 0 }

// Enqueue hands a draft to the peer.
func (t *PeerTalk) Enqueue(draft int) error {
	d := &t.Messages.Messenger.Drafts[draft]
	m := &t.Schema.Messages[d.Number]
	switch {
	case m.Reliable && !t.Out[m.Lane(true)].Expect(d.Size, d.Fragments), !m.Reliable && (len(t.loose) == MaxLoose || t.size+d.Size > MaxLooseBytes):
		return ErrBufferFull
	case m.Reliable:
		t.pending = append(t.pending, int32(draft))
	default:
		t.loose = append(t.loose, int32(draft))
		t.size += d.Size
	}
	return nil
}

// Say sends what there is to say in this tick.
func (t *PeerTalk) Say() {
	now := t.Snap.Tick
	t.packets, t.received = 0, 0
	if t.Inputs.miss(now) {
		t.Stats.InputsMissed++
	}
	t.assign()
	if t.Acked.Silence.Mute {
		t.dropLoose() // what is reliable waits
	} else {
		t.sayAll()
	}
	if t.Messages.Waits {
		t.Acked.Bound()
	}
}

// sayAll sends the messages that are due, and what else the client is to know.
func (t *PeerTalk) sayAll() {
	now := t.Snap.Tick
	// Times are completed by the newest state that came, or the newest of these packets.
	t.Messages.Messenger.Writer.Begin(t.Down, uint32(now), !t.Acked.Heard || now-t.Acked.Recent >= wire.ShortTime)
	t.sayReliable(wire.ChannelImmediate)
	t.sayReliable(wire.ChannelState)
	t.sayLoose()
	k := &t.Messages.Messenger.Writer
	if k.Index == 0 && !k.Open && (t.In[wire.ChannelState].Due > 0 || t.unsaid && now-t.Reported >= reportTicks) {
		t.startTalk()
	}
	if k.Open {
		t.finishTalk()
	}
}

// dropLoose gives up the unreliable messages of the tick.
func (t *PeerTalk) dropLoose() {
	for _, i := range t.loose {
		if i != Taken {
			t.Stats.MessagesDropped++
		}
	}
	t.loose, t.size = t.loose[:0], 0
}

// Taken stands in the place of a draft that was dealt with. It counts when that panicked, or a function of the user's did: what
// waits is looked at once, so that the next Replicate neither sends it again nor panics again.
const Taken = -1

// assign gives reliable messages their place in the lanes.
func (t *PeerTalk) assign() {
	m := &t.Messages.Messenger
	for k, i := range t.pending {
		if i == Taken {
			continue
		}
		t.pending[k] = Taken
		d := &m.Drafts[i]
		l := &t.Out[m.Schema.Messages[d.Number].Lane(true)]
		l.Cancel(d.Size, d.Fragments)
		if d.Viewers && !t.Acked.Views(d.Entity, d.ID, d.Known) {
			continue
		}
		data, bits := m.Encode(d)
		l.Push(d.Number, t.Snap.Tick, data, bits, m.Fragments(len(data)))
		t.Stats.Messages++
	}
	t.pending = t.pending[:0]
}

// startTalk opens a packet. The first one of a tick has in it what is to be said beside messages.
func (t *PeerTalk) startTalk() {
	k := &t.Messages.Messenger.Writer
	k.Start()
	var report wire.InputReport
	var ack wire.ChannelAck
	if k.Index == 0 {
		if t.unsaid {
			report = t.report()
		}
		if in := &t.In[wire.ChannelState]; in.Due > 0 {
			in.Ack(&ack, t.seen.Newest, k.W.Remaining()/64)
		}
	}
	k.Bare = !report.Present && !ack.Present
	report.Write(&k.W, t.Schema.Input != nil)
	ack.Write(&k.W)
}

// report tells the client how its packets fare.
func (t *PeerTalk) report() (r wire.InputReport) {
	now := t.Snap.Tick
	t.unsaid, t.Reported = false, now
	r = wire.InputReport{Present: true, Echo: uint16(t.seen.Newest), Held: uint32(min(now-t.came, wire.MaxHeldTicks))}
	r.Gathered, r.Late = t.Inputs.gathered(now), t.Inputs.late
	var of delta.Tick
	if r.Margin, of, r.Judged = t.Inputs.worst(now); r.Judged {
		r.Back = uint8(now + wire.InputTicks - of)
	}
	return r
}

// finishTalk sends the open packet.
func (t *PeerTalk) finishTalk() {
	packet := t.Messages.Messenger.Writer.Finish()
	t.Stats.MessagePackets++
	t.Stats.MessageBytes += uint64(len(packet))
	t.Send(packet)
}

// putTalk appends a message to a packet, if need be to a new one, and returns false if it fits into none.
func (t *PeerTalk) putTalk(m *WireMessage) bool {
	k := &t.Messages.Messenger.Writer
	if k.Open && k.Put(m) {
		return true
	}
	for {
		if k.Open {
			if k.Bare && k.count == 0 {
				k.Open = false
				return false // larger than a packet, with all that it waits for
			}
			t.finishTalk()
		}
		if k.Full() {
			return false
		}
		t.startTalk()
		if k.Put(m) {
			return true
		}
	}
}

// sayReliable sends what is due of a lane.
func (t *PeerTalk) sayReliable(lane int) {
	l := &t.Out[lane]
	if l.Empty() {
		return
	}
	var before *OutMessage
	k := &t.Messages.Messenger.Writer
	begun := k.Index
	l.Begin(t.Snap.Tick, &t.Acked.Trip)
	defer l.End()
	refresh := lane == wire.ChannelState && l.stuck(l.head(), len(t.open(l, l.head())))
	for id := l.First; id != l.Next; id++ {
		m := l.At(id)
		if m.Fragment != wire.WholeMessage && k.Index-begun >= MaxFragmentPackets {
			return
		}
		if !l.Due(m) && (!refresh || !m.came || !l.stuck(m, len(t.open(l, m)))) {
			before = m
			continue
		}
		w := WireMessage{
			Number: int(m.Number), Lane: lane, ID: id, Long: t.Schema.Messages[m.Number].Long, Fragment: m.Fragment,
			Tick: m.tick, Waits: lane == wire.ChannelState,
		}
		if w.Waits && m.Fragment != wire.MoreFragments {
			if !m.known && !t.find(l, m, before) {
				return // it has to wait here, and so do those after it
			}
			w.Deps = t.open(l, m)
		}
		w.Data, w.Bits = l.Bits.At(m.Place, wire.ByteSize(int(m.Bits))), int(m.Bits)
		if !t.putTalk(&w) {
			return
		}
		if m.Times > 0 {
			t.Stats.MessagesResent++
		}
		l.SentNow(id, len(w.Deps))
		before = m
	}
}

// open returns what a message still has to wait for, as far as the server knows.
func (t *PeerTalk) open(l *OutLane, m *OutMessage) []wire.Dependency {
	t.waits = t.waits[:0]
	if m.known {
		t.waits = t.Acked.StillWaits(l.deps.At(m.deps, int(m.count)), t.waits)
	}
	return t.waits
}

// find finds out what a message has to wait for, and returns false if that is too much to be sent.
func (t *PeerTalk) find(l *OutLane, m, before *OutMessage) bool {
	if before != nil && before.known && before.tick == m.tick {
		m.dependsLike(before)
		return true
	}
	deps, ok := t.Acked.Dependencies(m.tick, t.deps[:0], maxDependencies)
	t.deps = deps
	if ok {
		l.depend(m, deps)
	}
	return ok
}

// sayLoose sends the unreliable messages of the tick.
func (t *PeerTalk) sayLoose() {
	m := &t.Messages.Messenger
	known, ok := false, false
	for k, i := range t.loose {
		if i == Taken {
			continue
		}
		t.loose[k] = Taken
		d := &m.Drafts[i]
		if d.Viewers && !t.Acked.Views(d.Entity, d.ID, d.Known) {
			continue
		}
		w := WireMessage{Number: d.Number, Lane: -1, Tick: t.Snap.Tick, Waits: m.Schema.Messages[d.Number].Waits()}
		w.Data, w.Bits = m.Encode(d)
		if w.Waits {
			if !known {
				t.deps, ok = t.Acked.Dependencies(t.Snap.Tick, t.deps[:0], maxDependencies)
				known = true
			}
			if w.Deps = t.deps; !ok {
				t.Stats.MessagesDropped++
				continue
			}
		}
		if !t.putTalk(&w) {
			t.Stats.MessagesDropped++
			continue
		}
		t.Stats.Messages++
	}
	t.loose, t.size = t.loose[:0], 0
}

// ReceiveTalk takes a packet of messages or inputs.
func (t *PeerTalk) ReceiveTalk(packet, body []byte) error {
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
	if t.Messages.Handling {
		panic("replication: Receive in a message handler or hook of the server: keep the packet until the call that it runs in returns")
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
	if !t.seen.Fresh(h.Time, k.Index) {
		return wire.ErrStale
	}
	for i := range k.Acks {
		if a := &k.Acks[i]; a.Present && !t.Out[i].Acceptable(a) {
			t.Stats.RefusedAcks++
			return wire.ErrMalformed
		}
	}
	if t.received+len(k.Messages) > MaxMessagesPerTick {
		t.Stats.Floods++
		return ErrFlood
	}
	t.received += len(k.Messages)
	t.hear(&h)
	t.seen.Add(h.Time, k.Index)
	for i := range k.Acks {
		if a := &k.Acks[i]; a.Present {
			if t.Out[i].Ack(a, t.Snap.Tick) && !t.Acked.Heard {
				t.Acked.Trip.Sample(t.Snap.Tick + 1 - t.Out[i].latest) // no state was sent to learn it from
			}
		}
	}
	t.handleAll(k.Messages)
	return nil
}

// hear notes that a packet came, for the report.
func (t *PeerTalk) hear(h *wire.MessageHeader) {
	if !t.seen.Any || int32(h.Time-t.seen.Newest) > 0 {
		t.seen.Reach(h.Time)
		t.came = t.Snap.Tick + 1 // as early as the next Replicate can say so
	}
	t.unsaid = true
	for i := range t.Out {
		t.Out[i].Wake()
	}
}

// receiveInputs takes the bits of a packet of inputs.
func (t *PeerTalk) receiveInputs(h *wire.MessageHeader, rest []byte) error {
	if t.Schema.Input == nil {
		return wire.ErrUnexpected
	}
	rows, err := t.Messages.Messenger.readInputs(rest, t.Snap.Tick+1)
	if err != nil {
		return err
	}
	t.hear(h)
	for i := range rows {
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

// handleAll hands over the messages of a packet, and reliable ones that waited for them.
func (t *PeerTalk) handleAll(messages []StagedMessage) {
	for i := range messages {
		if m := &messages[i]; m.Lane >= 0 {
			t.In[wire.ChannelState].Take(m, nil, 0)
		}
	}
	t.Messages.Handling = true
	defer func() { t.Messages.Handling = false }()
	for in := &t.In[wire.ChannelState]; ; {
		next, ok := in.Turn(t.Schema.Messages)
		if !ok {
			break
		}
		number := next.Last.Number
		if !t.Messages.Messenger.OpenTurn(in, &next) {
			t.Stats.MessagesMalformed++
			continue
		}
		if !t.handle(number) {
			return // disconnected
		}
	}
	for i := range messages {
		if m := &messages[i]; m.Lane < 0 {
			t.Messages.Messenger.Open(m.Number, m.row)
			if !t.handle(m.Number) {
				return
			}
		}
	}
}

// handle hands over the message that was opened, and reports whether the session goes on.
func (t *PeerTalk) handle(number int) bool {
	handled, on := t.Handler(number)
	if !handled {
		t.Stats.MessagesUnhandled++
	}
	return on
}
