package message

// This file has the client's end of messages and inputs.

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// ClientMessages sends and receives the messages of a client, and sends its inputs.
type ClientMessages struct {
	Messenger
	ClientLinks
	mtu      int      // of packets to the server
	Handlers []func() // by message number
	Drained  []func() // called when there is room again
	Closed   bool     // the client is closed: what has come is not handed over any more

	Out        [wire.Channels]OutChannel // only the first is used
	In         [wire.Channels]InChannel
	unreliable []int32 // unreliable pending messages, by index
	size       int     // their bytes

	waiting  []InMessage       // unreliable messages that arrived
	Kept     int               // their number
	Bytes    int               // their bytes
	seen     wire.ReplayWindow // packets from the server
	Tick     delta.Tick        // of the message that is being handled
	Handling bool

	awake      uint32 // ticks that the user was there to see: of a pause, only a part
	turn       uint32 // when the next packets may be sent
	lastSent   uint32 // when the last packet was sent
	everSent   bool   // lastSent is valid
	echoed     uint32 // the newest time that the server acknowledged
	Inputs     clientInputs
	Shown      wire.Stamp // the time that the client shows, for the next inputs
	InputDelay clock.InputDelay
	Verdicts   Verdicts
}

const (
	// MaxWaiting is the number of unreliable messages that a client keeps until the world shows
	// their dependencies, and maxWaitingBytes their size.
	MaxWaiting      = 512
	maxWaitingBytes = MaxQueuedBytes
	// WaitTicks is the number of ticks for which it keeps them.
	WaitTicks = 64
	// keepAliveTicks is the number of ticks after which a quiet client sends a packet, to measure the
	// round trip.
	keepAliveTicks = 8
	// inputRingTicks is the number of inputs that a client keeps. The stamps that 31 inputs refer to begin 71 ticks
	// before the last of them. It divides the number of ticks, so that places go on where ticks wrap.
	inputRingTicks = 128
	// fewInputs is the number of ticks for which a frame gives inputs at most, unless it is longer than that.
	fewInputs = 8
	// newStartTicks is the step to another tick, forward or back, with which inputs start again.
	newStartTicks = 64
	// stepBackTicks is the step back after which a server has forgotten its inputs, and its reports are over.
	stepBackTicks = 4 * wire.InputTicks
)

// ClientLinks connects the messages of a client with its other parts.
type ClientLinks struct {
	Clock    *clock.Ticks
	Stats    *counters.ClientCounters
	Transmit func(packet []byte)
	Ready    func(deps []wire.Dependency) bool // reports whether the world shows all dependencies
	Muted    bool                              // messages count as handled, but no handler is called
	Delay    func(number int)                  // takes over messages that wait for the state of their tick; or nil
}

// NewClientMessages returns the client's end of messages, with nothing to send.
func NewClientMessages(links ClientLinks, s *schema.Schema, d Directory, mtu int, slots uint32) *ClientMessages {
	t := &ClientMessages{ClientLinks: links, mtu: mtu, Handlers: make([]func(), len(s.Messages))}
	t.Init(s, d, false, slots)
	if in := s.Input; in != nil {
		t.Inputs.ring = makeInputRows(inputRingTicks, in.Words)
	}
	return t
}

// Reset forgets all messages and inputs.
func (t *ClientMessages) Reset() {
	t.clear()
	*t = ClientMessages{
		Messenger: t.Messenger, ClientLinks: t.ClientLinks, mtu: t.mtu, Handlers: t.Handlers, Drained: t.Drained,
		Inputs: clientInputs{ring: t.Inputs.ring, Give: t.Inputs.Give},
	}
	t.Follow()
}

// Enqueue queues a pending message. The error is [ErrBufferFull], or wraps [schema.ErrMessageTooLarge].
func (t *ClientMessages) Enqueue(pending int) error {
	if err := t.CheckSize(pending, t.mtu); err != nil {
		return err
	}
	d := &t.Pending[pending]
	fragments := Fragments(d.size, t.mtu)
	m := &t.schema.Messages[d.number]
	switch l := &t.Out[wire.ChannelState]; {
	case m.Reliable && !l.expect(d.size, fragments),
		!m.Reliable && (len(t.unreliable) == MaxUnreliable || t.size+d.size > maxUnreliableBytes):
		return ErrBufferFull
	case m.Reliable:
		data, bits := t.Encode(d)
		l.cancel(d.size, fragments)
		l.push(d.number, delta.Tick(t.Clock.Now), data, bits, fragments)
		t.Stats.Messages++
	default:
		t.unreliable = append(t.unreliable, int32(pending))
		t.size += d.size
	}
	return nil
}

// SendTick sends messages, acks and inputs, in packets with a key. It does so once per tick, since times
// distinguish packets.
func (t *ClientMessages) SendTick(key wire.Key) {
	now := t.Clock.Now
	if int32(now-t.turn) < 0 {
		return
	}
	t.turn = now + 1
	t.begin(&t.Writer, key)
	t.sendReliable()
	t.sendUnreliable()
	t.clear()
	t.sendInputs()
	k := &t.Writer
	if k.Index == 0 && !k.open {
		acks := t.In[wire.ChannelState].acksLeft > 0 || t.In[wire.ChannelImmediate].acksLeft > 0
		if acks || !t.everSent || now-t.lastSent >= keepAliveTicks {
			t.startPacket()
		}
	}
	if k.open {
		t.finishPacket()
	}
}

// Follow adapts the delay of inputs when time has passed.
func (t *ClientMessages) Follow() {
	if t.schema.Input != nil {
		t.InputDelay.Follow(t.Clock)
	}
}

// begin starts the packets of a tick.
func (t *ClientMessages) begin(k *Writer, key wire.Key) {
	now := t.Clock.Now
	// The server completes times by the newest one that arrived, and by 0 before.
	k.Begin(key, now, now-t.echoed >= wire.ShortTime, t.mtu)
}

// startPacket opens a packet. The first one has the acks.
func (t *ClientMessages) startPacket() {
	k := &t.Writer
	k.Start()
	k.onlyMessages = true
	for i := range t.In {
		var ack wire.ChannelAck
		if in := &t.In[i]; k.Index == 0 && in.acksLeft > 0 {
			in.ack(&ack, t.seen.Newest, k.W.Remaining()/96)
			k.onlyMessages = false
		}
		ack.Write(&k.W)
	}
}

// finishPacket sends the open packet.
func (t *ClientMessages) finishPacket() {
	packet := t.Writer.Finish()
	t.Stats.MessagePackets++
	t.Stats.MessageBytes += uint64(len(packet))
	t.transmit(packet)
}

func (t *ClientMessages) transmit(packet []byte) {
	t.lastSent, t.everSent = t.Clock.Now, true
	t.Clock.NoteSent()
	t.Transmit(packet)
}

// putMessage appends a message to the open packet, or to a new one. It returns false if there is no
// room.
func (t *ClientMessages) putMessage(m *WireMessage) bool {
	k := &t.Writer
	for {
		if k.open {
			if k.Put(m) {
				return true
			}
			t.finishPacket()
		}
		if k.full() {
			return false
		}
		t.startPacket()
	}
}

// sendReliable sends the dirty messages of the channel.
func (t *ClientMessages) sendReliable() {
	l := &t.Out[wire.ChannelState]
	begun := t.Writer.Index
	l.begin(delta.Tick(t.Clock.Now), &t.Clock.Trip)
	defer l.end()
	for id := l.First; id != l.Next; id++ {
		m := l.at(id)
		if m.fragment != wire.Unfragmented && t.Writer.Index-begun >= MaxFragmentPackets {
			return
		}
		if !l.mustSend(m) {
			continue
		}
		w := WireMessage{
			Number: int(m.number), Channel: wire.ChannelState, ID: id,
			Long: t.schema.Messages[m.number].Long, Fragment: m.fragment,
			Bits: int(m.bits), Data: l.bits.at(m.place, wire.ByteSize(int(m.bits))),
		}
		if !t.putMessage(&w) {
			return
		}
		if m.times > 0 {
			t.Stats.MessagesResent++
		}
		l.noteSent(id, 0)
	}
}

// sendUnreliable sends the unreliable pending messages.
func (t *ClientMessages) sendUnreliable() {
	for k, i := range t.unreliable {
		if i == processed {
			continue
		}
		t.unreliable[k] = processed
		w := WireMessage{Number: t.Pending[i].number, Channel: -1}
		w.Data, w.Bits = t.Encode(&t.Pending[i])
		if t.putMessage(&w) {
			t.Stats.Messages++
		} else {
			t.Stats.MessagesDropped++
		}
	}
	t.unreliable, t.size = t.unreliable[:0], 0
}

// GiveInputs has the input set for each tick since the last one that has one. After a pause, older ones would be late.
func (t *ClientMessages) GiveInputs() {
	if t.Inputs.Give == nil || !t.InputDelay.Known {
		return
	}
	newest, most := delta.Tick(t.InputDelay.Tick()), uint32(fewInputs)
	if t.Clock.FrameTicks() > fewInputs {
		most = wire.InputTicks
	}
	tick := newest - delta.Tick(most) + 1
	if last := t.Inputs.newest; t.Inputs.any && !last.Before(tick) {
		tick = last + 1
	}
	for ; !tick.After(newest); tick++ {
		t.Inputs.Give(tick)
	}
}

// sendInputs sends the inputs that the server may not have.
func (t *ClientMessages) sendInputs() {
	if t.schema.Input == nil {
		return
	}
	if t.Clock.Trip.Known {
		t.Inputs.pass(delta.Tick(t.Clock.Tick()))
	}
	rows := t.Inputs.unacknowledged()
	if len(rows) == 0 {
		return
	}
	packet := t.inputPacket(rows)
	t.Stats.InputPackets++
	t.Stats.InputBytes += uint64(len(packet))
	t.transmit(packet)
}

// Receive reads a packet of messages with a key. near is the newest tick whose state arrived.
func (t *ClientMessages) Receive(packet, body []byte, key wire.Key, near uint32) error {
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
	if !t.seen.Believes(&h, near, true, !key.Off) {
		return wire.ErrStale
	}
	k := &t.Parser
	k.Header = h
	if err := k.Parse(rest, &t.In); err != nil {
		return err
	}
	if !t.seen.Fresh(h.Time, k.index) {
		return wire.ErrStale
	}
	if a := &k.acks[wire.ChannelState]; a.Present {
		if !t.Out[wire.ChannelState].acceptable(a) {
			return wire.ErrMalformed
		}
		t.Out[wire.ChannelState].ack(a, delta.Tick(t.Clock.Now))
	}
	t.Out[wire.ChannelState].retrySoon()
	t.seen.Add(h.Time, k.index)
	if k.report.Present {
		t.noteReceived(&k.report, h.Time)
	} else {
		t.Clock.Arrive(h.Time)
	}
	for i := range k.Messages {
		t.keep(&k.Messages[i])
	}
	return nil
}

// noteReceived reads the server's report about the client's packets.
func (t *ClientMessages) noteReceived(p *wire.InputReport, tick uint32) {
	sent := wire.Extend16(p.Echo, t.Clock.Now)
	t.Clock.NoteReceived(tick, sent, p.Held)
	if int32(t.Clock.Now-sent) >= 0 && int32(sent-t.echoed) > 0 {
		t.echoed = sent
		t.Out[wire.ChannelState].noteArrival(delta.Tick(sent))
	}
	if t.schema.Input == nil {
		return
	}
	t.Inputs.reported(inputReport{delta.Tick(tick), p.Late, p.Judged}, p.Gathered)
	t.Inputs.acknowledge(delta.Tick(tick + p.Gathered))
	if ahead := p.Late - t.Inputs.late; ahead < 128 { // else the report is old
		t.Stats.InputsMissed += uint64(ahead)
		t.Inputs.late = p.Late
	}
	t.Verdicts.note(delta.Tick(tick), p.Misses)
	if p.Judged {
		t.InputDelay.Judge(p.Margin, delta.Tick(tick+wire.InputTicks-uint32(p.Back)))
	}
}

// keep keeps a message until it can be handled.
func (t *ClientMessages) keep(m *StagedMessage) {
	statedAt, deps := delta.Tick(t.Parser.Header.Time), t.Parser.Deps[m.First:][:m.Deps]
	if m.Channel >= 0 {
		t.In[m.Channel].take(m, deps, statedAt)
		return
	}
	if t.Kept == MaxWaiting || t.Bytes+wire.ByteSize(m.Bits) > maxWaitingBytes {
		t.Stats.MessagesDropped++
		return
	}
	if t.Kept == len(t.waiting) {
		t.waiting = append(t.waiting, InMessage{})
	}
	w := &t.waiting[t.Kept]
	w.Fill(m, deps, statedAt)
	w.until = t.awake + WaitTicks
	t.Kept++
	t.Bytes += wire.ByteSize(m.Bits)
}

// HandleAll handles the messages whose dependencies the world now shows, reliable ones in order, after
// ticks have passed.
func (t *ClientMessages) HandleAll(ticks uint32) {
	t.awake += ticks
	t.Handling = true
	defer func() { t.Handling = false }()
	if t.Out[wire.ChannelState].drained() {
		for _, fn := range t.Drained {
			fn()
		}
	}
	for i := range t.In {
		l := &t.In[i]
		for {
			next, ok := l.nextInOrder(t.schema.Messages)
			if !ok || !next.broken && !t.Ready(next.last.deps) {
				break
			}
			number, tick := next.last.number, next.last.tick
			if !t.decodeNext(l, &next) {
				t.Stats.MessagesMalformed++
				continue
			}
			t.Tick = tick
			t.handle(number)
		}
	}
	kept := 0
	for i := 0; i < t.Kept; i++ {
		m := &t.waiting[i]
		switch {
		case !m.have: // handled in a call in which a later handler panicked, or this one
			continue
		case t.Ready(m.deps):
			t.decode(m.number, m.row())
			t.Tick = m.tick
			t.Bytes -= wire.ByteSize(m.bits)
			m.clear()
			t.handle(m.number)
			continue
		case int32(t.awake-m.until) > 0:
			t.Bytes -= wire.ByteSize(m.bits)
			m.clear()
			t.Stats.MessagesDropped++
			continue
		}
		t.waiting[i], t.waiting[kept] = t.waiting[kept], t.waiting[i]
		kept++
	}
	t.Kept = kept
}

// handle hands over a message that was decoded.
func (t *ClientMessages) handle(number int) {
	if t.Muted {
		return
	}
	if t.Delay != nil && t.schema.Messages[number].Waits() {
		t.Delay(number)
		return
	}
	t.deliver(number)
}

// Deliver hands over the message in Values, which was delayed.
func (t *ClientMessages) Deliver(number int) {
	was := t.Handling
	t.Handling = true
	defer func() { t.Handling = was }()
	t.deliver(number)
}

// deliver calls the handler of a message.
func (t *ClientMessages) deliver(number int) {
	if t.Muted {
		return
	}
	h := t.Handlers[number]
	if h == nil {
		t.Stats.MessagesUnhandled++
		return
	}
	t.Stats.MessagesReceived++
	h()
}

// inputPacket returns a packet of inputs. If they don't all fit, it leaves out the oldest.
func (t *ClientMessages) inputPacket(rows []inputRow) []byte {
	k := &t.Writer
	if k.open {
		t.finishPacket()
	}
	h := k.header
	h.Kind = wire.KindInputs
	from := k.key.Size()
	body := from + h.Size()
	for {
		w := bitbuf.NewWriter(k.buf[body:])
		h.Stamped = t.Inputs.stamped(rows)
		var delays *wire.Delays
		if h.Stamped {
			reference := t.Inputs.reference(rows)
			delays = &reference
		}
		putInputs(&w, t.Packed, len(t.schema.Messages), rows, delays)
		if w.Err() == nil {
			h.Put(k.buf[from:])
			packet := k.buf[:body+len(w.Bytes())]
			k.key.Write(packet, 0, h.Time)
			return packet
		}
		rows = rows[(len(rows)+1)/2:]
	}
}
