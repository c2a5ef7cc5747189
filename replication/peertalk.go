package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A peerTalk is what the server says to one client, and hears from it, beside the state of the world.
type peerTalk struct {
	snap     *snapshot
	schema   *schema.Schema
	messages *serverMessages
	acked    *tracker
	stats    *peerCounters
	down, up wire.Key            // of packets to the client and from it
	send     func(packet []byte) // a packet of messages
	// handler hands over the message that was opened. It reports whether there is a function for it, and whether the session
	// goes on.
	handler func(number int) (handled, on bool)

	out [wire.Channels]outLane
	in  [wire.Channels]inLane // only the first is used

	pending []int32 // drafts that the client is to get
	loose   []int32 // those of them that are unreliable
	size    int     // bytes of unreliable messages
	deps    []dependency
	waits   []dependency // that of a message is not settled

	inputs   inputRing
	seen     wire.ReplayWindow // packets from the client
	came     delta.Tick        // when the newest of them did
	reported delta.Tick        // when the client was last told so
	unsaid   bool              // something came that the client was not told of

	packets, received int // packets and messages that came since the last tick
}

const (
	// maxLoose is how many unreliable messages go out in a tick at most, and maxLooseBytes their size.
	maxLoose      = 256
	maxLooseBytes = maxQueuedBytes / 4
	// maxPacketsPerTick is how many packets of messages and inputs a client may send in a tick, and maxMessagesPerTick how many
	// messages. They leave room for a client or a server that stood still for a while.
	maxPacketsPerTick  = 256
	maxMessagesPerTick = 4096
	// reportTicks is how often a client is told how its inputs fare, at most, unless there is a packet for it anyway.
	reportTicks = 4
)

// resetTalk forgets all that was said.
func (p *Peer) resetTalk() {
	s := p.server
	if !s.schema.Talks() {
		return
	}
	t := &peerTalk{
		snap: &s.snap, schema: s.schema, messages: &s.messages, acked: &p.acked, stats: &p.stats,
		down: p.conn.session.down, up: p.conn.session.up, send: p.out.sendMessages, reported: s.snap.tick,
	}
	t.handler = func(number int) (handled, on bool) {
		h := s.handlers[number]
		if h == nil {
			return false, true
		}
		p.stats.MessagesReceived++
		h(p)
		return true, p.talk == t
	}
	p.talk = t
	p.acked.structure = nil
	if s.messages.waits {
		p.acked.structure = &structure{}
	}
}

// speaks reports whether there are new messages for the peer.
func (p *Peer) speaks() bool { return p.talk != nil && p.talk.speaks() }

// speaks reports whether there are new messages for the peer.
func (t *peerTalk) speaks() bool { return len(t.pending)+len(t.loose) > 0 }

// noteStructure notes that slots of a block came or went for the peer, or changed their components.
func (p *tracker) noteStructure(b int, mask uint64) {
	if p.structure != nil && mask != 0 {
		p.structure.note(b, mask, p.snap.tick)
	}
}

// enqueue hands a draft to the peer.
func (t *peerTalk) enqueue(draft int) error {
	d := &t.messages.messenger.drafts[draft]
	m := &t.schema.Messages[d.number]
	switch {
	case m.Reliable && !t.out[m.Lane(true)].expect(d.size, d.fragments), !m.Reliable && (len(t.loose) == maxLoose || t.size+d.size > maxLooseBytes):
		return ErrBufferFull
	case m.Reliable:
		t.pending = append(t.pending, int32(draft))
	default:
		t.loose = append(t.loose, int32(draft))
		t.size += d.size
	}
	return nil
}

// talkToAll sends the peers their messages, after the state of the tick.
func (s *Server) talkToAll() {
	if !s.schema.Talks() {
		return
	}
	for i := 0; i < len(s.peers); i++ {
		if p := s.peers[i]; p.conn.state == connected {
			p.talk.say()
		}
	}
	s.messages.messenger.clear()
}

// say sends what there is to say in this tick.
func (t *peerTalk) say() {
	now := t.snap.tick
	t.packets, t.received = 0, 0
	if t.inputs.miss(now) {
		t.stats.InputsMissed++
	}
	t.assign()
	if t.acked.silence.mute {
		t.dropLoose() // what is reliable waits
	} else {
		t.sayAll()
	}
	if t.messages.waits {
		t.acked.bound()
	}
}

// sayAll sends the messages that are due, and what else the client is to know.
func (t *peerTalk) sayAll() {
	now := t.snap.tick
	// Times are completed by the newest state that came, or the newest of these packets.
	t.messages.messenger.writer.begin(t.down, uint32(now), !t.acked.heard || now-t.acked.recent >= wire.ShortTime)
	t.sayReliable(wire.ChannelImmediate)
	t.sayReliable(wire.ChannelState)
	t.sayLoose()
	k := &t.messages.messenger.writer
	if k.index == 0 && !k.open && (t.in[wire.ChannelState].due > 0 || t.unsaid && now-t.reported >= reportTicks) {
		t.startTalk()
	}
	if k.open {
		t.finishTalk()
	}
}

// dropLoose gives up the unreliable messages of the tick.
func (t *peerTalk) dropLoose() {
	for _, i := range t.loose {
		if i != taken {
			t.stats.MessagesDropped++
		}
	}
	t.loose, t.size = t.loose[:0], 0
}

// taken stands in the place of a draft that was dealt with. It counts when that panicked, or a function of the user's did: what
// waits is looked at once, so that the next Replicate neither sends it again nor panics again.
const taken = -1

// assign gives reliable messages their place in the lanes.
func (t *peerTalk) assign() {
	m := &t.messages.messenger
	for k, i := range t.pending {
		if i == taken {
			continue
		}
		t.pending[k] = taken
		d := &m.drafts[i]
		l := &t.out[m.schema.Messages[d.number].Lane(true)]
		l.cancel(d.size, d.fragments)
		if d.viewers && !t.acked.views(d.entity, d.id, d.known) {
			continue
		}
		data, bits := m.encode(d)
		l.push(d.number, t.snap.tick, data, bits, m.fragments(len(data)))
		t.stats.Messages++
	}
	t.pending = t.pending[:0]
}

// startTalk opens a packet. The first one of a tick has in it what is to be said beside messages.
func (t *peerTalk) startTalk() {
	k := &t.messages.messenger.writer
	k.start()
	var report wire.InputReport
	var ack wire.ChannelAck
	if k.index == 0 {
		if t.unsaid {
			report = t.report()
		}
		if in := &t.in[wire.ChannelState]; in.due > 0 {
			in.ack(&ack, t.seen.Newest, k.w.Remaining()/64)
		}
	}
	k.bare = !report.Present && !ack.Present
	report.Write(&k.w, t.schema.Input != nil)
	ack.Write(&k.w)
}

// report tells the client how its packets fare.
func (t *peerTalk) report() (r wire.InputReport) {
	now := t.snap.tick
	t.unsaid, t.reported = false, now
	r = wire.InputReport{Present: true, Echo: uint16(t.seen.Newest), Held: uint32(min(now-t.came, wire.MaxHeldTicks))}
	r.Gathered, r.Late = t.inputs.gathered(now), t.inputs.late
	var of delta.Tick
	if r.Margin, of, r.Judged = t.inputs.worst(now); r.Judged {
		r.Back = uint8(now + wire.InputTicks - of)
	}
	return r
}

// finishTalk sends the open packet.
func (t *peerTalk) finishTalk() {
	packet := t.messages.messenger.writer.finish()
	t.stats.MessagePackets++
	t.stats.MessageBytes += uint64(len(packet))
	t.send(packet)
}

// putTalk appends a message to a packet, if need be to a new one, and returns false if it fits into none.
func (t *peerTalk) putTalk(m *wireMessage) bool {
	k := &t.messages.messenger.writer
	if k.open && k.put(m) {
		return true
	}
	for {
		if k.open {
			if k.bare && k.count == 0 {
				k.open = false
				return false // larger than a packet, with all that it waits for
			}
			t.finishTalk()
		}
		if k.full() {
			return false
		}
		t.startTalk()
		if k.put(m) {
			return true
		}
	}
}

// sayReliable sends what is due of a lane.
func (t *peerTalk) sayReliable(lane int) {
	l := &t.out[lane]
	if l.empty() {
		return
	}
	var before *outMessage
	k := &t.messages.messenger.writer
	begun := k.index
	l.begin(t.snap.tick, &t.acked.trip)
	defer l.end()
	refresh := lane == wire.ChannelState && l.stuck(l.head(), len(t.open(l, l.head())))
	for id := l.first; id != l.next; id++ {
		m := l.at(id)
		if m.fragment != wire.WholeMessage && k.index-begun >= maxFragmentPackets {
			return
		}
		if !l.due(m) && (!refresh || !m.came || !l.stuck(m, len(t.open(l, m)))) {
			before = m
			continue
		}
		w := wireMessage{
			number: int(m.number), lane: lane, id: id, long: t.schema.Messages[m.number].Long, fragment: m.fragment,
			tick: m.tick, waits: lane == wire.ChannelState,
		}
		if w.waits && m.fragment != wire.MoreFragments {
			if !m.known && !t.find(l, m, before) {
				return // it has to wait here, and so do those after it
			}
			w.deps = t.open(l, m)
		}
		w.data, w.bits = l.bits.at(m.place, wire.ByteSize(int(m.bits))), int(m.bits)
		if !t.putTalk(&w) {
			return
		}
		if m.times > 0 {
			t.stats.MessagesResent++
		}
		l.sentNow(id, len(w.deps))
		before = m
	}
}

// open returns what a message still has to wait for, as far as the server knows.
func (t *peerTalk) open(l *outLane, m *outMessage) []dependency {
	t.waits = t.waits[:0]
	if m.known {
		t.waits = t.acked.stillWaits(l.deps.at(m.deps, int(m.count)), t.waits)
	}
	return t.waits
}

// find finds out what a message has to wait for, and returns false if that is too much to be sent.
func (t *peerTalk) find(l *outLane, m, before *outMessage) bool {
	if before != nil && before.known && before.tick == m.tick {
		m.dependsLike(before)
		return true
	}
	deps, ok := t.acked.dependencies(m.tick, t.deps[:0], maxDependencies)
	t.deps = deps
	if ok {
		l.depend(m, deps)
	}
	return ok
}

// sayLoose sends the unreliable messages of the tick.
func (t *peerTalk) sayLoose() {
	m := &t.messages.messenger
	known, ok := false, false
	for k, i := range t.loose {
		if i == taken {
			continue
		}
		t.loose[k] = taken
		d := &m.drafts[i]
		if d.viewers && !t.acked.views(d.entity, d.id, d.known) {
			continue
		}
		w := wireMessage{number: d.number, lane: -1, tick: t.snap.tick, waits: m.schema.Messages[d.number].Waits()}
		w.data, w.bits = m.encode(d)
		if w.waits {
			if !known {
				t.deps, ok = t.acked.dependencies(t.snap.tick, t.deps[:0], maxDependencies)
				known = true
			}
			if w.deps = t.deps; !ok {
				t.stats.MessagesDropped++
				continue
			}
		}
		if !t.putTalk(&w) {
			t.stats.MessagesDropped++
			continue
		}
		t.stats.Messages++
	}
	t.loose, t.size = t.loose[:0], 0
}

// receiveTalk takes a packet of messages or inputs.
func (t *peerTalk) receiveTalk(packet, body []byte) error {
	var h wire.MessageHeader
	if t == nil {
		return ErrUnexpected // the schema has neither messages nor inputs
	}
	rest, ok := h.Parse(body, t.seen.Near())
	if !ok {
		return wire.ErrMalformed
	}
	if err := h.Check(t.up); err != nil {
		return err
	}
	if !t.up.Matches(packet, 0, h.Time) {
		return ErrChecksum
	}
	if t.messages.handling {
		panic("replication: Receive in a message handler or hook of the server: keep the packet until the call that it runs in returns")
	}
	if t.packets == maxPacketsPerTick {
		t.stats.Floods++
		return ErrFlood
	}
	t.packets++
	if h.Kind == wire.KindInputs {
		return t.receiveInputs(&h, rest)
	}
	k := &t.messages.messenger.parser
	k.header = h
	if err := k.parse(rest, &t.in); err != nil {
		return err
	}
	if !t.seen.Fresh(h.Time, k.index) {
		return wire.ErrStale
	}
	for i := range k.acks {
		if a := &k.acks[i]; a.Present && !t.out[i].acceptable(a) {
			t.stats.RefusedAcks++
			return wire.ErrMalformed
		}
	}
	if t.received+len(k.messages) > maxMessagesPerTick {
		t.stats.Floods++
		return ErrFlood
	}
	t.received += len(k.messages)
	t.hear(&h)
	t.seen.Add(h.Time, k.index)
	for i := range k.acks {
		if a := &k.acks[i]; a.Present {
			if t.out[i].ack(a, t.snap.tick) && !t.acked.heard {
				t.acked.trip.Sample(t.snap.tick + 1 - t.out[i].latest) // no state was sent to learn it from
			}
		}
	}
	t.handleAll(k.messages)
	return nil
}

// hear notes that a packet came, for the report.
func (t *peerTalk) hear(h *wire.MessageHeader) {
	if !t.seen.Any || int32(h.Time-t.seen.Newest) > 0 {
		t.seen.Reach(h.Time)
		t.came = t.snap.tick + 1 // as early as the next Replicate can say so
	}
	t.unsaid = true
	for i := range t.out {
		t.out[i].wake()
	}
}

// receiveInputs takes the bits of a packet of inputs.
func (t *peerTalk) receiveInputs(h *wire.MessageHeader, rest []byte) error {
	if t.schema.Input == nil {
		return ErrUnexpected
	}
	rows, err := t.messages.messenger.readInputs(rest, t.snap.tick+1)
	if err != nil {
		return err
	}
	t.hear(h)
	for i := range rows {
		switch t.inputs.take(&rows[i], t.snap.tick) {
		case inputInTime:
			t.stats.Inputs++
		case inputLate:
			t.stats.InputsLate++
		case inputEarly:
			t.stats.InputsEarly++
		}
	}
	return nil
}

// handleAll hands over the messages of a packet, and reliable ones that waited for them.
func (t *peerTalk) handleAll(messages []stagedMessage) {
	for i := range messages {
		if m := &messages[i]; m.lane >= 0 {
			t.in[wire.ChannelState].take(m, nil, 0)
		}
	}
	t.messages.handling = true
	defer func() { t.messages.handling = false }()
	for in := &t.in[wire.ChannelState]; ; {
		next, ok := in.turn(t.schema.Messages)
		if !ok {
			break
		}
		number := next.last.number
		if !t.messages.messenger.openTurn(in, &next) {
			t.stats.MessagesMalformed++
			continue
		}
		if !t.handle(number) {
			return // disconnected
		}
	}
	for i := range messages {
		if m := &messages[i]; m.lane < 0 {
			t.messages.messenger.open(m.number, m.row)
			if !t.handle(m.number) {
				return
			}
		}
	}
}

// handle hands over the message that was opened, and reports whether the session goes on.
func (t *peerTalk) handle(number int) bool {
	handled, on := t.handler(number)
	if !handled {
		t.stats.MessagesUnhandled++
	}
	return on
}

// toViewers sends a draft to those only that see an entity.
func (s *Server) toViewers(d *draft, e ecs.Entity) {
	d.viewers, d.entity = true, e
	id, known := s.NetID(e)
	d.id, d.known = netID(id), known
}

// sendMessages sends a packet of messages, and takes what it costs out of the budget. They are sent all the same, so debts
// are bounded.
func (p *sender) sendMessages(packet []byte) {
	if b := &p.budget; b.rate > 0 {
		b.spend(len(packet), p.opts.tickRate)
		b.deliver(len(packet))
		b.tokens = max(b.tokens, -p.savings())
	}
	p.transmit(packet)
}
