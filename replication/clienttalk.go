package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A clientTalk is what a client says to the server, and hears from it, beside the state of the world.
type clientTalk struct {
	messenger
	talkLinks
	handlers []func() // by message number

	out   [wire.Channels]outLane // only the first is used
	in    [wire.Channels]inLane
	loose []int32 // unreliable drafts
	size  int     // bytes of them

	waiting  []inMessage       // unreliable messages that came
	kept     int               // how many there are
	bytes    int               // of them
	seen     wire.ReplayWindow // packets of the server
	tick     delta.Tick        // of the message that is being handled
	handling bool

	spoke  uint32 // when something was said last
	said   bool   // something was said ever
	echoed uint32 // the newest time that the server answered to
	inputs clientInputs
	lead   clock.InputDelay
	late   uint8 // as the server counts
}

const (
	// maxWaiting is how many unreliable messages a client keeps for the world to be as they need it, and maxWaitingBytes their
	// size.
	maxWaiting      = 512
	maxWaitingBytes = maxQueuedBytes
	// waitApplies is for how many Applies it keeps them.
	waitApplies = 64
	// speakEvery is how often a client says something, so that the round trip is known.
	speakEvery = 8
	// inputRingTicks is how many inputs a client keeps.
	inputRingTicks = 64
)

// talkLinks are what the messages of a client need of the rest of it.
type talkLinks struct {
	clock    *clock.Ticks
	stats    *ClientStats
	transmit func(packet []byte)
	ready    func(deps []dependency) bool // reports whether the world shows all that a message waits for
}

func newClientTalk(links talkLinks, s *schema.Schema, d directory, mtu int, slots uint32) *clientTalk {
	t := &clientTalk{talkLinks: links, handlers: make([]func(), len(s.Messages))}
	t.init(s, d, mtu, false, slots)
	if in := s.Input; in != nil {
		t.inputs.ring = makeInputRows(inputRingTicks, in.Words)
	}
	return t
}

// reset forgets all that was said, at the server's tick.
func (t *clientTalk) reset(tick uint32) {
	t.clear()
	*t = clientTalk{messenger: t.messenger, talkLinks: t.talkLinks, handlers: t.handlers, inputs: clientInputs{ring: t.inputs.ring}}
	if t.schema.Input != nil {
		t.lead.Begin(tick)
	}
}

// enqueue hands a draft over.
func (t *clientTalk) enqueue(draft int) error {
	d := &t.drafts[draft]
	m := &t.schema.Messages[d.number]
	switch l := &t.out[wire.ChannelState]; {
	case m.Reliable && !l.expect(d.size, d.fragments), !m.Reliable && (len(t.loose) == maxLoose || t.size+d.size > maxLooseBytes):
		return ErrBufferFull
	case m.Reliable:
		data, bits := t.encode(d)
		l.cancel(d.size, d.fragments)
		l.push(d.number, delta.Tick(t.clock.Now), data, bits, d.fragments)
		t.stats.Messages++
	default:
		t.loose = append(t.loose, int32(draft))
		t.size += d.size
	}
	return nil
}

// say sends what there is to say, in packets with a key.
func (t *clientTalk) say(key wire.Key) {
	now := t.clock.Now
	t.begin(&t.writer, key)
	t.sayReliable()
	t.sayLoose()
	t.clear()
	t.sayInputs()
	k := &t.writer
	if k.index == 0 && !k.open && (t.in[wire.ChannelState].due > 0 || t.in[wire.ChannelImmediate].due > 0 || !t.said || now-t.spoke >= speakEvery) {
		t.startTalk()
	}
	if k.open {
		t.finishTalk()
	}
}

// step goes on to the next time.
func (t *clientTalk) step() {
	if t.schema.Input != nil {
		t.lead.Step(t.clock)
	}
}

// begin starts a time.
func (t *clientTalk) begin(k *talkWriter, key wire.Key) {
	now := t.clock.Now
	// The server completes times by the newest that came, and by 0 before.
	k.begin(key, now, now-t.echoed >= wire.ShortTime)
}

// startTalk opens a packet. The first one has the acks in it.
func (t *clientTalk) startTalk() {
	k := &t.writer
	k.start()
	k.bare = true
	for i := range t.in {
		var ack wire.ChannelAck
		if in := &t.in[i]; k.index == 0 && in.due > 0 {
			in.ack(&ack, t.seen.Newest, k.w.Remaining()/96)
			k.bare = false
		}
		ack.Write(&k.w)
	}
}

// finishTalk sends the open packet.
func (t *clientTalk) finishTalk() {
	packet := t.writer.finish()
	t.stats.MessagePackets++
	t.stats.MessageBytes += uint64(len(packet))
	t.spoke, t.said = t.clock.Now, true
	t.transmit(packet)
}

// putTalk appends a message to a packet, if need be to a new one, and returns false if there is no room.
func (t *clientTalk) putTalk(m *wireMessage) bool {
	k := &t.writer
	for {
		if k.open {
			if k.put(m) {
				return true
			}
			t.finishTalk()
		}
		if k.full() {
			return false
		}
		t.startTalk()
	}
}

func (t *clientTalk) sayReliable() {
	l := &t.out[wire.ChannelState]
	begun := t.writer.index
	l.begin(delta.Tick(t.clock.Now), &t.clock.Trip)
	defer l.end()
	for id := l.first; id != l.next; id++ {
		m := l.at(id)
		if m.fragment != wire.WholeMessage && t.writer.index-begun >= maxFragmentPackets {
			return
		}
		if !l.due(m) {
			continue
		}
		w := wireMessage{
			number: int(m.number), lane: wire.ChannelState, id: id, long: t.schema.Messages[m.number].Long, fragment: m.fragment,
			bits: int(m.bits), data: l.bits.at(m.place, wire.ByteSize(int(m.bits))),
		}
		if !t.putTalk(&w) {
			return
		}
		if m.times > 0 {
			t.stats.MessagesResent++
		}
		l.sentNow(id, 0)
	}
}

func (t *clientTalk) sayLoose() {
	for k, i := range t.loose {
		if i == taken {
			continue
		}
		t.loose[k] = taken
		w := wireMessage{number: t.drafts[i].number, lane: -1}
		w.data, w.bits = t.encode(&t.drafts[i])
		if t.putTalk(&w) {
			t.stats.Messages++
		} else {
			t.stats.MessagesDropped++
		}
	}
	t.loose, t.size = t.loose[:0], 0
}

// sayInputs sends the inputs that the server may not have.
func (t *clientTalk) sayInputs() {
	if t.schema.Input == nil {
		return
	}
	if t.clock.Trip.Known {
		t.inputs.pass(delta.Tick(t.clock.Base + uint32(int32(t.clock.ServerTick())))) // over by now
	}
	rows := t.inputs.unsettled()
	if len(rows) == 0 {
		return
	}
	packet := t.inputPacket(rows)
	t.stats.InputPackets++
	t.stats.InputBytes += uint64(len(packet))
	t.spoke, t.said = t.clock.Now, true
	t.transmit(packet)
}

// receive takes a packet of messages with a key. near is the newest tick of which state came.
func (t *clientTalk) receive(packet, body []byte, key wire.Key, near uint32) error {
	if t.handling {
		panic("replication: Receive in a message handler: keep the packet until Apply returns")
	}
	if n := t.seen.Near(); t.seen.Any && int32(n-near) > 0 {
		near = n
	}
	var h wire.MessageHeader
	rest, ok := h.Parse(body, near)
	if !ok {
		return wire.ErrMalformed
	}
	if err := h.Check(key); err != nil {
		return err
	}
	if !key.Matches(packet, 0, h.Time) {
		return ErrChecksum
	}
	k := &t.parser
	k.header = h
	if err := k.parse(rest, &t.in); err != nil {
		return err
	}
	if !t.seen.Fresh(h.Time, k.index) {
		return wire.ErrStale
	}
	if a := &k.acks[wire.ChannelState]; a.Present {
		if !t.out[wire.ChannelState].acceptable(a) {
			return wire.ErrMalformed
		}
		t.out[wire.ChannelState].ack(a, delta.Tick(t.clock.Now))
	}
	t.out[wire.ChannelState].wake()
	t.seen.Add(h.Time, k.index)
	t.clock.Arrive(h.Time)
	if k.report.Present {
		t.hear(&k.report, h.Time)
	}
	for i := range k.messages {
		t.keep(&k.messages[i])
	}
	return nil
}

// hear takes what the server tells of the client's packets.
func (t *clientTalk) hear(p *wire.InputReport, tick uint32) {
	sent := wire.Extend16(p.Echo, t.clock.Now)
	t.clock.Hear(sent, p.Held)
	if int32(t.clock.Now-sent) >= 0 && int32(sent-t.echoed) > 0 {
		t.echoed = sent
	}
	if t.schema.Input == nil {
		return
	}
	t.inputs.pass(delta.Tick(tick + p.Gathered))
	if ahead := p.Late - t.late; ahead < 128 { // else it is an old report
		t.stats.InputsMissed += uint64(ahead)
		t.late = p.Late
	}
	if p.Judged {
		t.lead.Judge(p.Margin, delta.Tick(tick+wire.InputTicks-uint32(p.Back)), t.clock)
	}
}

// keep keeps a message until it is its turn.
func (t *clientTalk) keep(m *stagedMessage) {
	said, deps := delta.Tick(t.parser.header.Time), t.parser.deps[m.first:][:m.deps]
	if m.lane >= 0 {
		t.in[m.lane].take(m, deps, said)
		return
	}
	if t.kept == maxWaiting || t.bytes+wire.ByteSize(m.bits) > maxWaitingBytes {
		t.stats.MessagesDropped++
		return
	}
	if t.kept == len(t.waiting) {
		t.waiting = append(t.waiting, inMessage{})
	}
	w := &t.waiting[t.kept]
	w.set(m, deps, said)
	w.until = t.clock.Now + waitApplies
	t.kept++
	t.bytes += wire.ByteSize(m.bits)
}

// handleAll hands over the messages whose turn it is, now that the world is up to date.
func (t *clientTalk) handleAll() {
	t.handling = true
	defer func() { t.handling = false }()
	for i := range t.in {
		l := &t.in[i]
		for {
			next, ok := l.turn(t.schema.Messages)
			if !ok || !next.broken && !t.ready(next.last.deps) {
				break
			}
			number, tick := next.last.number, next.last.tick
			if !t.openTurn(l, &next) {
				t.stats.MessagesMalformed++
				continue
			}
			t.tick = tick
			t.handle(number)
		}
	}
	kept := 0
	for i := 0; i < t.kept; i++ {
		m := &t.waiting[i]
		switch {
		case t.ready(m.deps):
			t.open(m.number, m.row())
			t.tick = m.tick
			t.bytes -= wire.ByteSize(m.bits)
			m.clear()
			t.handle(m.number)
			continue
		case int32(t.clock.Now-m.until) >= 0:
			t.bytes -= wire.ByteSize(m.bits)
			m.clear()
			t.stats.MessagesDropped++
			continue
		}
		t.waiting[i], t.waiting[kept] = t.waiting[kept], t.waiting[i]
		kept++
	}
	t.kept = kept
}

func (t *clientTalk) handle(number int) {
	h := t.handlers[number]
	if h == nil {
		t.stats.MessagesUnhandled++
		return
	}
	t.stats.MessagesReceived++
	h()
}

// inputPacket writes a packet of inputs; if they don't all fit, the oldest are left out.
func (t *clientTalk) inputPacket(rows []inputRow) []byte {
	k := &t.writer
	if k.open {
		t.finishTalk()
	}
	h := k.header
	h.Kind = wire.KindInputs
	from := k.seal.Size()
	h.Put(k.buf[from:])
	body := from + h.Size()
	for {
		w := bitbuf.NewWriter(k.buf[body:])
		putInputs(&w, t.packed, len(t.schema.Messages), rows)
		if w.Err() == nil {
			packet := k.buf[:body+len(w.Bytes())]
			k.seal.Write(packet, 0, h.Time)
			return packet
		}
		rows = rows[(len(rows)+1)/2:]
	}
}

// readInputs reads the bits of a packet of inputs.
func (m *messenger) readInputs(rest []byte, near delta.Tick) ([]inputRow, error) {
	in := m.schema.Input
	if m.inputs == nil {
		m.inputs = makeInputRows(maxRepeated, in.Words)
	}
	r := bitbuf.NewReader(rest)
	return parseInputs(&r, m.packed, len(m.schema.Messages), in, near, m.inputs)
}
