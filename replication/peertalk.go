package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A peerTalk is what the server says to one client, and hears from it, beside the state of the world.
type peerTalk struct {
	out [wire.Channels]outLane
	in  [wire.Channels]inLane // only the first is used

	pending []int32 // drafts that the client is to get
	loose   []int32 // those of them that are unreliable
	size    int     // bytes of unreliable messages
	deps    []dependency
	open    []dependency

	inputs   inputRing
	seen     wire.ReplayWindow // packets from the client
	came     delta.Tick        // when the newest of them did
	reported delta.Tick        // when the client was last told so
	unsaid   bool              // something came that the client was not told of

	packets, messages int // that came since the last tick
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
	if !p.server.schema.Talks() {
		return
	}
	p.talk = &peerTalk{reported: p.server.snap.tick}
	p.acked.structure = nil
	if p.server.messages.waits {
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
func (p *Peer) enqueue(draft int) error {
	t, d := p.talk, &p.server.messages.messenger.drafts[draft]
	m := &p.server.schema.Messages[d.number]
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

// views reports whether the peer sees the entity of a draft, or saw it before it ended in this tick.
func (p *Peer) views(d *draft) bool {
	s := p.server
	id, ok := s.NetID(d.entity)
	if ok && s.snap.slots.alive.Has(int(id.Slot)) && s.snap.slots.info[id.Slot].entity == d.entity {
		b, bit := int(id.Slot>>6), uint64(1)<<(id.Slot&63)
		return p.sight.view.sees(b, bit) != 0
	}
	if !d.known || s.snap.slots.info[d.id.Slot].generation != d.id.Generation {
		return false
	}
	b, bit := int(d.id.Slot>>6), uint64(1)<<(d.id.Slot&63)
	// A slot that ended now was severed now if the peer saw it. Else the client may show what was in it before, but not this.
	return b < len(p.acked.due) && p.acked.gone(b)&bit != 0 && p.acked.acks.severedAt(int(d.id.Slot), s.snap.tick)
}

// talkToAll sends the peers their messages, after the state of the tick.
func (s *Server) talkToAll() {
	if !s.schema.Talks() {
		return
	}
	for i := 0; i < len(s.peers); i++ {
		if p := s.peers[i]; p.connected {
			p.say()
		}
	}
	s.messages.messenger.clear()
}

// say sends what there is to say in this tick.
func (p *Peer) say() {
	s, t := p.server, p.talk
	now := s.snap.tick
	t.packets, t.messages = 0, 0
	if t.inputs.miss(now) {
		p.stats.InputsMissed++
	}
	p.assign()
	if p.acked.silence.mute {
		p.dropLoose() // what is reliable waits
	} else {
		p.sayAll()
	}
	if s.messages.waits {
		p.acked.bound()
	}
}

// sayAll sends the messages that are due, and what else the client is to know.
func (p *Peer) sayAll() {
	s, t, now := p.server, p.talk, p.server.snap.tick
	// Times are completed by the newest state that came, or the newest of these packets.
	s.messages.messenger.writer.begin(p.session.down, uint32(now), !p.acked.heard || now-p.acked.recent >= wire.ShortTime)
	p.sayReliable(wire.ChannelImmediate)
	p.sayReliable(wire.ChannelState)
	p.sayLoose()
	k := &s.messages.messenger.writer
	if k.index == 0 && !k.open && (t.in[wire.ChannelState].due > 0 || t.unsaid && now-t.reported >= reportTicks) {
		p.startTalk()
	}
	if k.open {
		p.finishTalk()
	}
}

// dropLoose gives up the unreliable messages of the tick.
func (p *Peer) dropLoose() {
	t := p.talk
	for _, i := range t.loose {
		if i != taken {
			p.stats.MessagesDropped++
		}
	}
	t.loose, t.size = t.loose[:0], 0
}

// taken stands in the place of a draft that was dealt with. It counts when that panicked, or a function of the user's did: what
// waits is looked at once, so that the next Replicate neither sends it again nor panics again.
const taken = -1

// assign gives reliable messages their place in the lanes.
func (p *Peer) assign() {
	t, m := p.talk, &p.server.messages.messenger
	for k, i := range t.pending {
		if i == taken {
			continue
		}
		t.pending[k] = taken
		d := &m.drafts[i]
		l := &t.out[m.schema.Messages[d.number].Lane(true)]
		l.cancel(d.size, d.fragments)
		if d.viewers && !p.views(d) {
			continue
		}
		data, bits := m.encode(d)
		l.push(d.number, p.server.snap.tick, data, bits, m.fragments(len(data)))
		p.stats.Messages++
	}
	t.pending = t.pending[:0]
}

// startTalk opens a packet. The first one of a tick has in it what is to be said beside messages.
func (p *Peer) startTalk() {
	t, k := p.talk, &p.server.messages.messenger.writer
	k.start()
	var report wire.InputReport
	var ack wire.ChannelAck
	if k.index == 0 {
		if t.unsaid {
			report = p.report()
		}
		if in := &t.in[wire.ChannelState]; in.due > 0 {
			in.ack(&ack, t.seen.Newest, k.w.Remaining()/64)
		}
	}
	k.bare = !report.Present && !ack.Present
	report.Write(&k.w, p.server.schema.Input != nil)
	ack.Write(&k.w)
}

// report tells the client how its packets fare.
func (p *Peer) report() (r wire.InputReport) {
	t, now := p.talk, p.server.snap.tick
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
func (p *Peer) finishTalk() {
	packet := p.server.messages.messenger.writer.finish()
	p.stats.MessagePackets++
	p.stats.MessageBytes += uint64(len(packet))
	p.out.spendOnMessages(len(packet))
	p.out.transmit(packet)
}

// putTalk appends a message to a packet, if need be to a new one, and returns false if it fits into none.
func (p *Peer) putTalk(m *wireMessage) bool {
	k := &p.server.messages.messenger.writer
	if k.open && k.put(m) {
		return true
	}
	for {
		if k.open {
			if k.bare && k.count == 0 {
				k.open = false
				return false // larger than a packet, with all that it waits for
			}
			p.finishTalk()
		}
		if k.full() {
			return false
		}
		p.startTalk()
		if k.put(m) {
			return true
		}
	}
}

// sayReliable sends what is due of a lane.
func (p *Peer) sayReliable(lane int) {
	t := p.talk
	l := &t.out[lane]
	if l.empty() {
		return
	}
	var before *outMessage
	k := &p.server.messages.messenger.writer
	begun := k.index
	l.begin(p.server.snap.tick, &p.acked.trip)
	defer l.end()
	refresh := lane == wire.ChannelState && l.stuck(l.head(), len(p.open(l, l.head())))
	for id := l.first; id != l.next; id++ {
		m := l.at(id)
		if m.fragment != wire.WholeMessage && k.index-begun >= maxFragmentPackets {
			return
		}
		if !l.due(m) && (!refresh || !m.came || !l.stuck(m, len(p.open(l, m)))) {
			before = m
			continue
		}
		w := wireMessage{
			number: int(m.number), lane: lane, id: id, long: p.server.schema.Messages[m.number].Long, fragment: m.fragment,
			tick: m.tick, waits: lane == wire.ChannelState,
		}
		if w.waits && m.fragment != wire.MoreFragments {
			if !m.known && !p.find(l, m, before) {
				return // it has to wait here, and so do those after it
			}
			w.deps = p.open(l, m)
		}
		w.data, w.bits = l.bits.at(m.place, wire.ByteSize(int(m.bits))), int(m.bits)
		if !p.putTalk(&w) {
			return
		}
		if m.times > 0 {
			p.stats.MessagesResent++
		}
		l.sentNow(id, len(w.deps))
		before = m
	}
}

// open returns what a message still has to wait for, as far as the server knows.
func (p *Peer) open(l *outLane, m *outMessage) []dependency {
	p.talk.open = p.talk.open[:0]
	if m.known {
		p.talk.open = p.acked.stillWaits(l.deps.at(m.deps, int(m.count)), p.talk.open)
	}
	return p.talk.open
}

// find finds out what a message has to wait for, and returns false if that is too much to be sent.
func (p *Peer) find(l *outLane, m, before *outMessage) bool {
	if before != nil && before.known && before.tick == m.tick {
		m.dependsLike(before)
		return true
	}
	deps, ok := p.acked.dependencies(m.tick, p.talk.deps[:0], maxDependencies)
	p.talk.deps = deps
	if ok {
		l.depend(m, deps)
	}
	return ok
}

// sayLoose sends the unreliable messages of the tick.
func (p *Peer) sayLoose() {
	t, m := p.talk, &p.server.messages.messenger
	known, ok := false, false
	for k, i := range t.loose {
		if i == taken {
			continue
		}
		t.loose[k] = taken
		d := &m.drafts[i]
		if d.viewers && !p.views(d) {
			continue
		}
		w := wireMessage{number: d.number, lane: -1, tick: p.server.snap.tick, waits: m.schema.Messages[d.number].Waits()}
		w.data, w.bits = m.encode(d)
		if w.waits {
			if !known {
				t.deps, ok = p.acked.dependencies(p.server.snap.tick, t.deps[:0], maxDependencies)
				known = true
			}
			if w.deps = t.deps; !ok {
				p.stats.MessagesDropped++
				continue
			}
		}
		if !p.putTalk(&w) {
			p.stats.MessagesDropped++
			continue
		}
		p.stats.Messages++
	}
	t.loose, t.size = t.loose[:0], 0
}

// receiveTalk takes a packet of messages or inputs.
func (p *Peer) receiveTalk(packet, body []byte) error {
	s, t := p.server, p.talk
	var h wire.MessageHeader
	if t == nil {
		return ErrUnexpected
	}
	rest, ok := h.Parse(body, t.seen.Near())
	if !ok {
		return wire.ErrMalformed
	}
	if err := h.Check(p.session.up); err != nil {
		return err
	}
	if !p.session.up.Matches(packet, 0, h.Time) {
		return ErrChecksum
	}
	if s.messages.handling {
		panic("replication: Receive in a message handler or hook of the server: keep the packet until the call that it runs in returns")
	}
	if t.packets == maxPacketsPerTick {
		p.stats.Floods++
		return ErrFlood
	}
	t.packets++
	if h.Kind == wire.KindInputs {
		return p.receiveInputs(&h, rest)
	}
	k := &s.messages.messenger.parser
	k.header = h
	if err := k.parse(rest, &t.in); err != nil {
		return err
	}
	if !t.seen.Fresh(h.Time, k.index) {
		return wire.ErrStale
	}
	for i := range k.acks {
		if a := &k.acks[i]; a.Present && !t.out[i].acceptable(a) {
			p.stats.RefusedAcks++
			return wire.ErrMalformed
		}
	}
	if t.messages+len(k.messages) > maxMessagesPerTick {
		p.stats.Floods++
		return ErrFlood
	}
	t.messages += len(k.messages)
	p.hear(&h)
	t.seen.Add(h.Time, k.index)
	for i := range k.acks {
		if a := &k.acks[i]; a.Present {
			if t.out[i].ack(a, s.snap.tick) && !p.acked.heard {
				p.acked.trip.Sample(s.snap.tick + 1 - t.out[i].latest) // no state was sent to learn it from
			}
		}
	}
	p.handleAll(k.messages)
	return nil
}

// hear notes that a packet came, for the report.
func (p *Peer) hear(h *wire.MessageHeader) {
	t := p.talk
	if !t.seen.Any || int32(h.Time-t.seen.Newest) > 0 {
		t.seen.Reach(h.Time)
		t.came = p.server.snap.tick + 1 // as early as the next Replicate can say so
	}
	t.unsaid = true
	for i := range t.out {
		t.out[i].wake()
	}
}

// receiveInputs takes the bits of a packet of inputs.
func (p *Peer) receiveInputs(h *wire.MessageHeader, rest []byte) error {
	s := p.server
	if s.schema.Input == nil {
		return ErrUnexpected
	}
	rows, err := s.messages.messenger.readInputs(rest, s.snap.tick+1)
	if err != nil {
		return err
	}
	p.hear(h)
	for i := range rows {
		switch p.talk.inputs.take(&rows[i], s.snap.tick) {
		case inputInTime:
			p.stats.Inputs++
		case inputLate:
			p.stats.InputsLate++
		case inputEarly:
			p.stats.InputsEarly++
		}
	}
	return nil
}

// handleAll hands over the messages of a packet, and reliable ones that waited for them.
func (p *Peer) handleAll(messages []stagedMessage) {
	s, t := p.server, p.talk
	for i := range messages {
		if m := &messages[i]; m.lane >= 0 {
			t.in[wire.ChannelState].take(m, nil, 0)
		}
	}
	s.messages.handling = true
	defer func() { s.messages.handling = false }()
	for in := &t.in[wire.ChannelState]; ; {
		next, ok := in.turn(s.schema.Messages)
		if !ok {
			break
		}
		number := next.last.number
		if !s.messages.messenger.openTurn(in, &next) {
			p.stats.MessagesMalformed++
			continue
		}
		if p.handle(number); p.talk != t {
			return // disconnected
		}
	}
	for i := range messages {
		if m := &messages[i]; m.lane < 0 {
			s.messages.messenger.open(m.number, m.row)
			if p.handle(m.number); p.talk != t {
				return
			}
		}
	}
}

// handle hands over the message that was opened.
func (p *Peer) handle(number int) {
	h := p.server.messages.handlers[number]
	if h == nil {
		p.stats.MessagesUnhandled++
		return
	}
	p.stats.MessagesReceived++
	h(p)
}

// toViewers sends a draft to those only that see an entity.
func (s *Server) toViewers(d *draft, e ecs.Entity) {
	d.viewers, d.entity = true, e
	d.id, d.known = s.NetID(e)
}

// spendOnMessages takes what messages cost out of the budget. They are sent all the same, so debts are bounded.
func (p *sender) spendOnMessages(bytes int) {
	if b := &p.budget; b.rate > 0 {
		b.spend(bytes, p.opts.tickRate)
		b.deliver(bytes)
		b.tokens = max(b.tokens, -p.savings())
	}
}
