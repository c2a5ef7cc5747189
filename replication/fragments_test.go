package replication

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

type mLetter struct {
	Number uint32
	To     ecs.Entity
	Pages  [3]string `repl:"max=4000"`
}

type mNotice struct {
	Number uint32
	Pages  [3]string `repl:"max=4000"`
}

type mRumor struct {
	Text string `repl:"max=4000"`
}

type mBulk struct {
	Parts [5]string `repl:"max=4000"`
}

// pages spreads a text over pages; text is the inverse.
func pages(text string) (p [3]string) {
	for i := range p {
		n := min(len(text), 4000)
		p[i], text = text[:n], text[n:]
	}
	return p
}

func text(p [3]string) string { return strings.Join(p[:], "") }

func letterSchema() *Schema {
	s := testSchema()
	RegisterMessage[mHit](s)
	RegisterMessage[mChat](s, Immediate())
	RegisterMessage[mLetter](s)
	RegisterMessage[mNotice](s, Immediate())
	RegisterMessage[mRumor](s, Unreliable())
	RegisterMessage[mBulk](s)
	RegisterMessage[mFlash](s, Unreliable(), Immediate())
	return s
}

// bulk returns a message whose row takes size bytes, at least 8: 12 bits for each length, one bit
// for each that is not 0, and 8 bits for each byte above 127.
func bulk(size int) (m mBulk) {
	n := size - 8
	if n > 16000 {
		n--
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = 128 | byte(i*7)
	}
	for i := range m.Parts {
		n := min(len(b), 4000)
		m.Parts[i], b = string(b[:n]), b[n:]
	}
	return m
}

// longText returns a text of so many bytes, different for each number.
func longText(number uint32, bytes int) string {
	line := fmt.Sprintf("%d ünd ", number)
	return strings.Repeat(line, bytes/len(line)+1)[:bytes]
}

// TestShortMessagesOfWideTypesAreShort: a message takes its own length, not the longest of its
// type.
func TestShortMessagesOfWideTypesAreShort(t *testing.T) {
	x := connectedWire(t, letterSchema())
	e := x.spawn(ecs.ComponentID[tHealth](x.world))
	x.rounds(10)
	var got, up []string
	OnServerMessage(x.client, func(m mLetter) {
		to, ok := x.mirrored(e)
		require.True(t, ok && to == m.To)
		got = append(got, text(m.Pages))
	})
	OnServerMessage(x.client, func(m mRumor) { got = append(got, m.Text) })
	OnClientMessage(x.server, func(_ *Peer, m mLetter) { require.Equal(t, e, m.To); up = append(up, text(m.Pages)) })
	OnClientMessage(x.server, func(_ *Peer, m mRumor) { up = append(up, m.Text) })
	require.NoError(t, SendToClient(x.peer, mLetter{To: e, Pages: pages("a")}))
	require.NoError(t, SendToAll(x.server, mRumor{"b"}))
	require.NoError(t, SendToViewers(x.server, e, mLetter{To: e, Pages: pages("c")}))
	for _, p := range x.replicate() {
		require.Less(t, len(p), 60)
		x.deliver(p)
	}
	require.NoError(t, x.client.Apply())
	to, _ := x.mirrored(e)
	require.NoError(t, SendToServer(x.client, mLetter{To: to, Pages: pages("d")}))
	require.NoError(t, SendToServer(x.client, mRumor{"e"}))
	for _, p := range x.apply() {
		require.Less(t, len(p), 60)
		x.answer(p)
	}
	require.Equal(t, []string{"a", "c", "b"}, got)
	require.Equal(t, []string{"d", "e"}, up)

	// As many as there are ids, though 1,024 of the longest would take 12 MB.
	n := 0
	for SendToClient(x.peer, mLetter{Pages: pages("f")}) == nil {
		n++
	}
	require.Equal(t, wire.MaxQueued, n)
}

// TestFragmentsOfEverySize: a message that fits into a packet is not fragmented, one byte more
// makes two fragments, and packets never exceed their limit.
func TestFragmentsOfEverySize(t *testing.T) {
	for _, mtu := range []int{64, 65, 100, 300, 1200, 9000} {
		for _, down := range []bool{true, false} {
			if !down && mtu < minClientMTU {
				continue
			}
			t.Run(fmt.Sprint(mtu, " ", down), func(t *testing.T) {
				s := NewSchema()
				RegisterMessage[mBulk](s)
				manyMessages(s, 200) // type numbers take all their bits
				x := newWire(t, s, WithMTU(mtu), replicationtest.FirstTick(1<<31), WithTimeout(0))
				x.restart(s, 7, WithMTU(max(mtu, minClientMTU)))
				x.rounds(5)
				require.True(t, x.peer.Connected())
				var got []mBulk
				OnServerMessage(x.client, func(m mBulk) { got = append(got, m) })
				OnClientMessage(x.server, func(_ *Peer, m mBulk) { got = append(got, m) })
				room, piece := mtu-wire.MessageOverhead, mtu-message.FragmentOverhead
				for _, size := range []int{9, room - 1, room, room + 1, 2 * piece, 2*piece + 1, 5 * piece, 5*piece + 1, message.MaxFragments * piece} {
					size = min(size, 20000)
					x.rounds(10)
					want := 1
					if size > room {
						want = (size + piece - 1) / piece
					}
					require.Equal(t, want, message.Fragments(size, mtu), "%d bytes", size)
					var out *message.OutChannel
					if down {
						require.NoError(t, SendToClient(x.peer, bulk(size)), "%d bytes", size)
						x.server.snap.Tick += message.MaxMessageAge // an age takes all its bits
						out = &x.peer.messages.Out[wire.ChannelState]
					} else {
						require.NoError(t, SendToServer(x.client, bulk(size)), "%d bytes", size)
						out = &x.client.messages.Out[wire.ChannelState]
					}
					before, resent := out.Next, x.peer.Stats().MessagesResent+x.client.Stats().MessagesResent
					for range 60 {
						for _, p := range x.replicate() {
							require.LessOrEqual(t, len(p), mtu)
							x.deliver(p)
						}
						for _, p := range x.apply() {
							require.LessOrEqual(t, len(p), max(mtu, minClientMTU))
							x.answer(p)
						}
						x.deliver(x.takeDown()...)
					}
					ids := out.Next - before
					if down {
						require.EqualValues(t, want, ids, "%d bytes", size)
					}
					require.True(t, out.Empty())
					require.Zero(t, out.Size)
					require.Zero(t, out.Expected)
					require.Equal(t, resent, x.peer.Stats().MessagesResent+x.client.Stats().MessagesResent, "%d bytes are sent once", size)
					require.Len(t, got, 1)
					require.Equal(t, bulk(size), got[0])
					got = got[:0]
				}
			})
		}
	}
}

// TestMessagesTooLargeAreRefused: the error names both sizes, for unreliable messages larger than a
// packet and reliable ones of more than 128 fragments.
func TestMessagesTooLargeAreRefused(t *testing.T) {
	x := connectedWire(t, letterSchema(), WithMTU(100))
	const unreliable = "replication: message too large: mRumor takes 84 bytes, and 83 fit into a packet of 100: unreliable messages go in one; " +
		"make it reliable, send it in pieces, or raise the MTU"
	const reliable = "replication: message too large: mBulk takes 10369 bytes, and 10368 go in packets of 100: send it in pieces, or raise the MTU"
	require.NoError(t, SendToClient(x.peer, mRumor{strings.Repeat("x", 92)}), "7 bits each")
	require.NoError(t, SendToClient(x.peer, mRumor{strings.Repeat("\xff", 81)}))
	for _, err := range []error{
		SendToClient(x.peer, mRumor{strings.Repeat("\xff", 82)}), SendToAll(x.server, mRumor{strings.Repeat("\xff", 82)}),
		SendToViewers(x.server, x.world.NewEntity(), mRumor{strings.Repeat("\xff", 82)}),
	} {
		require.EqualError(t, err, unreliable)
		require.ErrorIs(t, err, schema.ErrMessageTooLarge)
	}
	require.EqualError(t, SendToClient(x.peer, bulk(10369)), reliable)
	require.NoError(t, SendToClient(x.peer, bulk(10368)))
	require.NoError(t, SendToServer(x.client, bulk(20000)))
	require.ErrorIs(t, SendToServer(x.client, mRumor{strings.Repeat("\xff", 1182)}), schema.ErrMessageTooLarge)
	require.NoError(t, SendToServer(x.client, mRumor{strings.Repeat("\xff", 1181)}))
	require.Len(t, x.server.messages.Messenger.Pending, 3, "what is refused leaves nothing behind")
	got := 0
	OnServerMessage(x.client, func(mRumor) { got++ })
	OnServerMessage(x.client, func(mBulk) { got++ })
	OnClientMessage(x.server, func(*Peer, mRumor) { got++ })
	OnClientMessage(x.server, func(*Peer, mBulk) { got++ })
	x.rounds(60)
	require.Equal(t, 5, got)
}

// TestFragmentsCountAgainstTheirChannel: a message counts with its bytes and the ids of its
// fragments, and releases both.
func TestFragmentsCountAgainstTheirChannel(t *testing.T) {
	x := connectedWire(t, letterSchema(), WithMTU(64))
	n := 0
	for SendToClient(x.peer, bulk(5760)) == nil {
		n++
	}
	require.Equal(t, wire.MaxQueued/message.MaxFragments, n, "ids")
	other := x.spawn(ecs.ComponentID[tHealth](x.world))
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return false }})
	x.rounds(300)
	require.NoError(t, SendToViewers(x.server, other, bulk(5000)))
	x.rounds(10)
	for channel := range wire.Channels {
		require.Zero(t, x.peer.messages.Out[channel].Size)
		require.Zero(t, x.peer.messages.Out[channel].Expected)
	}
	n = 0
	for SendToServer(x.client, bulk(20000)) == nil {
		n++
	}
	require.Equal(t, message.MaxQueuedBytes/20000, n, "bytes")
	x.rounds(60)
	require.Zero(t, x.client.messages.Out[wire.ChannelState].Size)
	require.Zero(t, x.peer.messages.In[wire.ChannelState].Size)
}

// A letterRig sends large messages among small ones, both ways and in both channels. It requires
// that each arrives once, complete and in order.
type letterRig struct {
	*end
	t                      testing.TB
	server                 *Server
	sent, got              uint32 // in the channel of messages that wait for state
	sentNow, gotNow        uint32 // immediate
	sentUp, gotUp          uint32
	large, immediate, upUp int // received
}

func newLetterRig(t testing.TB, seed uint64, link netsim.Config, mtu int, opts ...ServerOption) *letterRig {
	w := ecs.NewWorld()
	s := NewServer(&w, letterSchema(), append([]ServerOption{WithSeed(seed), WithMTU(mtu)}, opts...)...)
	r := &letterRig{t: t, server: s, end: connect(s, seed, link, WithSeed(seed), WithMTU(max(mtu/2, minClientMTU)))}
	next := func(count *uint32, number uint32, text string) {
		require.Equal(t, *count, number, "once and in order")
		require.Equal(t, longText(number, r.size(number)), text)
		*count++
	}
	OnServerMessage(r.client, func(m mHit) { next(&r.got, m.Number, longText(m.Number, r.size(m.Number))) })
	OnServerMessage(r.client, func(m mLetter) { next(&r.got, m.Number, text(m.Pages)); r.large++ })
	OnServerMessage(r.client, func(m mChat) { next(&r.gotNow, m.Number, longText(m.Number, r.size(m.Number))) })
	OnServerMessage(r.client, func(m mNotice) { next(&r.gotNow, m.Number, text(m.Pages)); r.immediate++ })
	OnClientMessage(s, func(_ *Peer, m mHit) { next(&r.gotUp, m.Number, longText(m.Number, r.size(m.Number))) })
	OnClientMessage(s, func(_ *Peer, m mLetter) { next(&r.gotUp, m.Number, text(m.Pages)); r.upUp++ })
	return r
}

// size returns the length of a message's text; 0 is a small message.
func (r *letterRig) size(number uint32) int {
	if number%5 != 3 {
		return 0
	}
	return 10_000 / (1 + int(number/5)%7)
}

// send sends the next message in each channel, if there is room.
func (r *letterRig) send() {
	if !r.peer.Connected() {
		return
	}
	text := func(n uint32) [3]string { return pages(longText(n, r.size(n))) }
	errs := []error{nil, nil, nil}
	if n := r.sent; r.size(n) > 0 {
		errs[0] = SendToClient(r.peer, mLetter{Number: n, Pages: text(n)})
	} else {
		errs[0] = SendToClient(r.peer, mHit{Number: n})
	}
	if n := r.sentNow; r.size(n) > 0 {
		errs[1] = SendToClient(r.peer, mNotice{Number: n, Pages: text(n)})
	} else {
		errs[1] = SendToClient(r.peer, mChat{Number: n})
	}
	if n := r.sentUp; r.size(n) > 0 {
		errs[2] = SendToServer(r.client, mLetter{Number: n, Pages: text(n)})
	} else {
		errs[2] = SendToServer(r.client, mHit{Number: n})
	}
	for i, count := range []*uint32{&r.sent, &r.sentNow, &r.sentUp} {
		if errs[i] == nil {
			*count++
		} else {
			require.Equal(r.t, message.ErrBufferFull, errs[i])
		}
	}
}

func (r *letterRig) tick(messages int) {
	for range messages {
		r.send()
	}
	r.server.Replicate()
	r.step(r.t)
}

// TestLargeMessagesExactlyOnceInOrder over bad networks, with packets of all sizes.
func TestLargeMessagesExactlyOnceInOrder(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	count := uint32(ticksOf(3000, 600))
	bad := netsim.Config{Latency: 3, Jitter: 1, Loss: 0.25, Duplicate: 0.25, Reorder: 0.3, ReorderBy: 8}
	for _, c := range []struct {
		name string
		mtu  int
		link netsim.Config
		opts []ServerOption
		ids  uint32
	}{
		{name: "perfect", mtu: 1200},
		{name: "bad", mtu: 1200, link: bad},
		{name: "large packets", mtu: 4000, link: bad},
		{name: "small packets", mtu: 300, link: bad},
		{name: "no checksum", mtu: 1200, link: bad, opts: []ServerOption{WithoutChecksum()}},
		{name: "ids wrap", mtu: 600, link: bad, ids: 1<<32 - 100},
		{name: "short ids wrap", mtu: 600, link: bad, ids: 1<<16 - 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newLetterRig(t, seedOf(t), c.link, c.mtu, c.opts...)
			for !r.peer.Connected() {
				r.tick(0)
			}
			if c.ids != 0 {
				x := &messageRig{t: t}
				x.firstIDs(&messageEnd{end: r.end}, c.ids)
			}
			ticks := 0
			for ; r.got < count || r.gotNow < count || r.gotUp < count; ticks++ {
				r.tick(2)
				require.Less(t, ticks, 100*int(count), "%+v\n%+v\n%d %d %d", r.peer.Stats(), r.client.Stats(), r.got, r.gotNow, r.gotUp)
			}
			r.link.SetConfig(netsim.Config{})
			for range 200 {
				r.tick(0)
			}
			require.Equal(t, []uint32{r.sent, r.sentNow, r.sentUp}, []uint32{r.got, r.gotNow, r.gotUp})
			require.Greater(t, min(r.large, r.immediate, r.upUp), int(count)/6)
			require.Zero(t, r.peer.Stats().MessagesMalformed+r.client.Stats().MessagesMalformed)
			require.Zero(t, r.peer.messages.In[wire.ChannelState].Size+r.client.messages.In[wire.ChannelState].Size+r.client.messages.In[wire.ChannelImmediate].Size)
			t.Logf("%d ticks, %d of %d resent, %d of %d up", ticks, r.peer.Stats().MessagesResent, r.peer.messages.Out[wire.ChannelState].Next+r.peer.messages.Out[wire.ChannelImmediate].Next,
				r.client.Stats().MessagesResent, r.client.messages.Out[wire.ChannelState].Next)
		})
	}
}

// TestALargeMessageWaitsForItsEntities: when all fragments have arrived, the message is still held
// until the entity that it references arrives. If that never does, the message does not wait
// forever.
func TestALargeMessageWaitsForItsEntities(t *testing.T) {
	x := connectedWire(t, letterSchema())
	hidden := false
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }, Keep: true})
	x.rounds(3)
	var got []mLetter
	OnServerMessage(x.client, func(m mLetter) { got = append(got, m) })
	text := pages(longText(1, 5000))
	lose := func() {
		for _, p := range x.replicate() {
			if wire.KindOf(p[wire.ChecksumSize:]) == wire.KindMessages {
				x.deliver(p)
			}
		}
		x.answer(x.apply()...)
	}
	e := x.spawn(ecs.ComponentID[tHealth](x.world))
	require.NoError(t, SendToClient(x.peer, mLetter{Number: 1, To: e, Pages: text}))
	for range 3 {
		lose()
	}
	require.Empty(t, got)
	require.Greater(t, x.client.messages.In[wire.ChannelState].Size, 4000, "all is there")
	require.False(t, x.peer.messages.Out[wire.ChannelState].Empty(), "nothing was handed over")
	x.rounds(20)
	require.Len(t, got, 1)
	mirrored, ok := x.mirrored(e)
	require.True(t, ok)
	require.Equal(t, mLetter{1, mirrored, text}, got[0])
	require.True(t, x.peer.messages.Out[wire.ChannelState].Empty())

	f := x.spawn(ecs.ComponentID[tHealth](x.world))
	require.NoError(t, SendToClient(x.peer, mLetter{Number: 2, To: f, Pages: text}))
	lose()
	hidden = true // so the entity is never sent
	x.rounds(100)
	require.Len(t, got, 2)
	require.Equal(t, mLetter{Number: 2, Pages: text}, got[1])
}

// TestHalfOfAMessageEndsWithItsSession: received fragments are dropped with the session, whichever
// end begins the next one.
func TestHalfOfAMessageEndsWithItsSession(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(x *fixture, s *Schema)
	}{
		{"restart", func(x *fixture, s *Schema) { x.restart(s, 8) }},
		{"reconnect", func(x *fixture, _ *Schema) { x.client.Reconnect() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := letterSchema()
			x := connectedWire(t, s)
			require.NoError(t, SendToClient(x.peer, mLetter{Number: 1, Pages: pages(longText(1, 9000))}))
			require.NoError(t, SendToClient(x.peer, mNotice{Number: 1, Pages: pages(longText(1, 9000))}))
			require.NoError(t, SendToServer(x.client, mLetter{Number: 1, Pages: pages(longText(1, 9000))}))
			x.deliver(x.replicate()[1:]...)
			x.answer(x.apply()[1:]...)
			require.NotZero(t, x.client.messages.In[wire.ChannelState].Size)
			require.NotZero(t, x.client.messages.In[wire.ChannelImmediate].Size)
			require.NotZero(t, x.peer.messages.In[wire.ChannelState].Size)
			c.do(x, s)
			var got, up []string
			OnServerMessage(x.client, func(m mLetter) { got = append(got, text(m.Pages)) })
			OnServerMessage(x.client, func(m mNotice) { got = append(got, text(m.Pages)) })
			OnClientMessage(x.server, func(_ *Peer, m mLetter) { up = append(up, text(m.Pages)) })
			for !x.client.Connected() {
				x.round()
			}
			x.rounds(5)
			require.Zero(t, x.client.messages.In[wire.ChannelState].Size+x.client.messages.In[wire.ChannelImmediate].Size+x.peer.messages.In[wire.ChannelState].Size)
			require.NoError(t, SendToClient(x.peer, mLetter{Number: 2, Pages: pages(longText(2, 9000))}))
			require.NoError(t, SendToServer(x.client, mLetter{Number: 3, Pages: pages(longText(3, 9000))}))
			x.rounds(10)
			require.Equal(t, []string{longText(2, 9000)}, got)
			require.Equal(t, []string{longText(3, 9000)}, up)
			require.Zero(t, x.client.Stats().MessagesMalformed+x.peer.Stats().MessagesMalformed)
		})
	}
}

// TestLargeMessagesLeaveRoomForOthers: in each channel, fragments fill only a part of the packets
// of a tick.
func TestLargeMessagesLeaveRoomForOthers(t *testing.T) {
	x := connectedWire(t, letterSchema())
	rumors := 0
	OnServerMessage(x.client, func(mRumor) { rumors++ })
	OnClientMessage(x.server, func(*Peer, mRumor) { rumors++ })
	for range 3 {
		require.NoError(t, SendToClient(x.peer, bulk(20000)))
		require.NoError(t, SendToClient(x.peer, mNotice{Pages: pages(longText(1, 12000))}))
		require.NoError(t, SendToServer(x.client, bulk(20000)))
	}
	ticks := 0
	for ; !x.peer.messages.Out[wire.ChannelState].Empty() || !x.client.messages.Out[wire.ChannelState].Empty() || ticks == 0; ticks++ {
		require.NoError(t, SendToClient(x.peer, mRumor{"psst"}))
		require.NoError(t, SendToServer(x.client, mRumor{"psst"}))
		before := x.peer.Stats().MessagePackets
		down := x.replicate()
		require.LessOrEqual(t, x.peer.Stats().MessagePackets-before, uint64(2*message.MaxFragmentPackets+1))
		x.deliver(down...)
		before = x.client.Stats().MessagePackets
		up := x.apply()
		require.LessOrEqual(t, x.client.Stats().MessagePackets-before, uint64(message.MaxFragmentPackets+1))
		x.answer(up...)
		require.Less(t, ticks, 30)
	}
	require.Equal(t, 2*ticks, rumors)
	require.Zero(t, x.peer.Stats().MessagesDropped+x.client.Stats().MessagesDropped)
	require.Greater(t, ticks, 60000/1181/message.MaxFragmentPackets)
}

// TestOnlyLongTypesAreFragmented: other types are sent as they would be without fragments.
func TestOnlyLongTypesAreFragmented(t *testing.T) {
	s := letterSchema()
	RegisterMessage[mBytes47](s)
	RegisterMessage[mBytes48](s)
	RegisterMessage[mMap](s, Unreliable())
	s.raw.Freeze()
	var long []string
	for i := range s.raw.Messages {
		if s.raw.Messages[i].Long {
			long = append(long, s.raw.Messages[i].Name)
		}
	}
	require.Equal(t, []string{"mLetter", "mNotice", "mBulk", "mBytes48"}, long)
	require.Equal(t, 47, wire.MaxUnfragmented, "as docs/wire-format.md states")
}

// TestSmallMessagesOfWideTypesDoNotAllocate once all buffers have grown to their size.
func TestSmallMessagesOfWideTypesDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := newReusingLink(t, letterSchema())
	got := 0
	OnServerMessage(x.client, func(m mNotice) { got += len(text(m.Pages)) })
	OnClientMessage(x.server, func(_ *Peer, m mNotice) { got += len(text(m.Pages)) })
	round := func() {
		_ = SendToClient(x.peer, mNotice{})
		_ = SendToServer(x.client, mNotice{})
		x.server.Replicate()
		for _, p := range x.down {
			_ = x.client.Receive(p)
		}
		x.down = x.down[:0]
		x.apply()
		for _, p := range x.up {
			_ = x.peer.Receive(p)
		}
		x.up = x.up[:0]
	}
	for range 2000 {
		round()
	}
	before := x.peer.Stats().MessagesReceived
	require.Zero(t, testing.AllocsPerRun(500, round))
	require.Greater(t, x.peer.Stats().MessagesReceived, before+400)
	require.Zero(t, got)
	require.True(t, bytes.Equal(nil, x.server.messages.Messenger.Joined))
}
