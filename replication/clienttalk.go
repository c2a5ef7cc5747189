package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A clientTalk is what a client says to the server, and hears from it, beside the state of the world.
type clientTalk struct {
	message.Messenger
	talkLinks
	handlers []func() // by message number

	out   [wire.Channels]message.OutLane // only the first is used
	in    [wire.Channels]message.InLane
	loose []int32 // unreliable drafts
	size  int     // bytes of them

	waiting  []message.InMessage // unreliable messages that came
	kept     int                 // how many there are
	bytes    int                 // of them
	seen     wire.ReplayWindow   // packets of the server
	tick     delta.Tick          // of the message that is being handled
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
	maxWaitingBytes = message.MaxQueuedBytes
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
	ready    func(deps []wire.Dependency) bool // reports whether the world shows all that a message waits for
}

func newClientTalk(links talkLinks, s *schema.Schema, d message.Directory, mtu int, slots uint32) *clientTalk {
	t := &clientTalk{talkLinks: links, handlers: make([]func(), len(s.Messages))}
	t.Init(s, d, mtu, false, slots)
	if in := s.Input; in != nil {
		t.inputs.ring = message.MakeInputRows(inputRingTicks, in.Words)
	}
	return t
}

// reset forgets all that was said, at the server's tick.
func (t *clientTalk) reset(tick uint32) {
	t.Clear()
	*t = clientTalk{Messenger: t.Messenger, talkLinks: t.talkLinks, handlers: t.handlers, inputs: clientInputs{ring: t.inputs.ring}}
	if t.Schema.Input != nil {
		t.lead.Begin(tick)
	}
}

// enqueue hands a draft over.
func (t *clientTalk) enqueue(draft int) error {
	d := &t.Drafts[draft]
	m := &t.Schema.Messages[d.Number]
	switch l := &t.out[wire.ChannelState]; {
	case m.Reliable && !l.Expect(d.Size, d.Fragments), !m.Reliable && (len(t.loose) == message.MaxLoose || t.size+d.Size > message.MaxLooseBytes):
		return message.ErrBufferFull
	case m.Reliable:
		data, bits := t.Encode(d)
		l.Cancel(d.Size, d.Fragments)
		l.Push(d.Number, delta.Tick(t.clock.Now), data, bits, d.Fragments)
		t.stats.Messages++
	default:
		t.loose = append(t.loose, int32(draft))
		t.size += d.Size
	}
	return nil
}

// say sends what there is to say, in packets with a key.
func (t *clientTalk) say(key wire.Key) {
	now := t.clock.Now
	t.begin(&t.Writer, key)
	t.sayReliable()
	t.sayLoose()
	t.Clear()
	t.sayInputs()
	k := &t.Writer
	if k.Index == 0 && !k.Open && (t.in[wire.ChannelState].Due > 0 || t.in[wire.ChannelImmediate].Due > 0 || !t.said || now-t.spoke >= speakEvery) {
		t.startTalk()
	}
	if k.Open {
		t.finishTalk()
	}
}

// step goes on to the next time.
func (t *clientTalk) step() {
	if t.Schema.Input != nil {
		t.lead.Step(t.clock)
	}
}

// begin starts a time.
func (t *clientTalk) begin(k *message.TalkWriter, key wire.Key) {
	now := t.clock.Now
	// The server completes times by the newest that came, and by 0 before.
	k.Begin(key, now, now-t.echoed >= wire.ShortTime)
}

// startTalk opens a packet. The first one has the acks in it.
func (t *clientTalk) startTalk() {
	k := &t.Writer
	k.Start()
	k.Bare = true
	for i := range t.in {
		var ack wire.ChannelAck
		if in := &t.in[i]; k.Index == 0 && in.Due > 0 {
			in.Ack(&ack, t.seen.Newest, k.W.Remaining()/96)
			k.Bare = false
		}
		ack.Write(&k.W)
	}
}

// finishTalk sends the open packet.
func (t *clientTalk) finishTalk() {
	packet := t.Writer.Finish()
	t.stats.MessagePackets++
	t.stats.MessageBytes += uint64(len(packet))
	t.spoke, t.said = t.clock.Now, true
	t.transmit(packet)
}

// putTalk appends a message to a packet, if need be to a new one, and returns false if there is no room.
func (t *clientTalk) putTalk(m *message.WireMessage) bool {
	k := &t.Writer
	for {
		if k.Open {
			if k.Put(m) {
				return true
			}
			t.finishTalk()
		}
		if k.Full() {
			return false
		}
		t.startTalk()
	}
}

func (t *clientTalk) sayReliable() {
	l := &t.out[wire.ChannelState]
	begun := t.Writer.Index
	l.Begin(delta.Tick(t.clock.Now), &t.clock.Trip)
	defer l.End()
	for id := l.First; id != l.Next; id++ {
		m := l.At(id)
		if m.Fragment != wire.WholeMessage && t.Writer.Index-begun >= message.MaxFragmentPackets {
			return
		}
		if !l.Due(m) {
			continue
		}
		w := message.WireMessage{
			Number: int(m.Number), Lane: wire.ChannelState, ID: id, Long: t.Schema.Messages[m.Number].Long, Fragment: m.Fragment,
			Bits: int(m.Bits), Data: l.Bits.At(m.Place, wire.ByteSize(int(m.Bits))),
		}
		if !t.putTalk(&w) {
			return
		}
		if m.Times > 0 {
			t.stats.MessagesResent++
		}
		l.SentNow(id, 0)
	}
}

func (t *clientTalk) sayLoose() {
	for k, i := range t.loose {
		if i == message.Taken {
			continue
		}
		t.loose[k] = message.Taken
		w := message.WireMessage{Number: t.Drafts[i].Number, Lane: -1}
		w.Data, w.Bits = t.Encode(&t.Drafts[i])
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
	if t.Schema.Input == nil {
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
		return wire.ErrChecksum
	}
	k := &t.Parser
	k.Header = h
	if err := k.Parse(rest, &t.in); err != nil {
		return err
	}
	if !t.seen.Fresh(h.Time, k.Index) {
		return wire.ErrStale
	}
	if a := &k.Acks[wire.ChannelState]; a.Present {
		if !t.out[wire.ChannelState].Acceptable(a) {
			return wire.ErrMalformed
		}
		t.out[wire.ChannelState].Ack(a, delta.Tick(t.clock.Now))
	}
	t.out[wire.ChannelState].Wake()
	t.seen.Add(h.Time, k.Index)
	t.clock.Arrive(h.Time)
	if k.Report.Present {
		t.hear(&k.Report, h.Time)
	}
	for i := range k.Messages {
		t.keep(&k.Messages[i])
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
	if t.Schema.Input == nil {
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
func (t *clientTalk) keep(m *message.StagedMessage) {
	said, deps := delta.Tick(t.Parser.Header.Time), t.Parser.Deps[m.First:][:m.Deps]
	if m.Lane >= 0 {
		t.in[m.Lane].Take(m, deps, said)
		return
	}
	if t.kept == maxWaiting || t.bytes+wire.ByteSize(m.Bits) > maxWaitingBytes {
		t.stats.MessagesDropped++
		return
	}
	if t.kept == len(t.waiting) {
		t.waiting = append(t.waiting, message.InMessage{})
	}
	w := &t.waiting[t.kept]
	w.Fill(m, deps, said)
	w.Until = t.clock.Now + waitApplies
	t.kept++
	t.bytes += wire.ByteSize(m.Bits)
}

// handleAll hands over the messages whose turn it is, now that the world is up to date.
func (t *clientTalk) handleAll() {
	t.handling = true
	defer func() { t.handling = false }()
	for i := range t.in {
		l := &t.in[i]
		for {
			next, ok := l.Turn(t.Schema.Messages)
			if !ok || !next.Broken && !t.ready(next.Last.Deps) {
				break
			}
			number, tick := next.Last.Number, next.Last.Tick
			if !t.OpenTurn(l, &next) {
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
		case t.ready(m.Deps):
			t.Open(m.Number, m.Row())
			t.tick = m.Tick
			t.bytes -= wire.ByteSize(m.Bits)
			m.Clear()
			t.handle(m.Number)
			continue
		case int32(t.clock.Now-m.Until) >= 0:
			t.bytes -= wire.ByteSize(m.Bits)
			m.Clear()
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
func (t *clientTalk) inputPacket(rows []message.InputRow) []byte {
	k := &t.Writer
	if k.Open {
		t.finishTalk()
	}
	h := k.Header
	h.Kind = wire.KindInputs
	from := k.Seal.Size()
	h.Put(k.Buf[from:])
	body := from + h.Size()
	for {
		w := bitbuf.NewWriter(k.Buf[body:])
		putInputs(&w, t.Packed, len(t.Schema.Messages), rows)
		if w.Err() == nil {
			packet := k.Buf[:body+len(w.Bytes())]
			k.Seal.Write(packet, 0, h.Time)
			return packet
		}
		rows = rows[(len(rows)+1)/2:]
	}
}
