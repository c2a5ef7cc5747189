package message

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// sendAll sends all messages of a channel that must be sent in a tick, and returns their ids.
func sendAll(l *OutChannel, now delta.Tick) (ids []uint32) {
	l.begin(now, &clock.RoundTrip{})
	for id := l.First; id != l.Next; id++ {
		if l.mustSend(l.at(id)) {
			l.noteSent(id, 0)
			ids = append(ids, id)
		}
	}
	l.end()
	return ids
}

// push appends messages of one byte.
func push(l *OutChannel, n int, now delta.Tick) {
	for range n {
		l.push(0, now, []byte{1}, 8, 1)
	}
}

// ackOf acknowledges all messages before an id, and those of the word from that id on. A packet of
// the given tick was the newest to arrive.
func ackOf(next uint32, word uint32, received delta.Tick) *wire.ChannelAck {
	a := &wire.ChannelAck{Present: true, Received: uint16(received), Next: uint16(next)}
	if word != 0 {
		a.Count, a.Words[0] = 1, word
	}
	return a
}

func TestOutChannelReservesRoom(t *testing.T) {
	var l OutChannel
	require.False(t, l.expect(MaxQueuedBytes+1, 1), "too many bytes")
	require.False(t, l.expect(1, wire.MaxQueued+1), "too many fragments")
	for range 3 { // what is canceled takes no room
		require.True(t, l.expect(MaxQueuedBytes, wire.MaxQueued))
		require.False(t, l.expect(1, 0))
		require.False(t, l.expect(0, 1))
		l.cancel(MaxQueuedBytes, wire.MaxQueued)
	}
	push(&l, wire.MaxQueued-1, 1) // what is queued does
	require.True(t, l.expect(MaxQueuedBytes-l.Size, 1))
	require.False(t, l.expect(0, 1))
	require.False(t, l.expect(1, 0))
}

// TestOvertakenMessagesAreNotRetransmittedAtOnce: packets may arrive in another order than they were
// sent in, so a message counts as lost only when a packet sent well after it has arrived.
func TestOvertakenMessagesAreNotRetransmittedAtOnce(t *testing.T) {
	slack := (&clock.RoundTrip{}).Slack()
	for _, ahead := range []delta.Tick{1, slack, slack + 1} {
		l := OutChannel{First: 7, Next: 7, Unsent: 7}
		push(&l, 1, 10)
		require.Equal(t, []uint32{7}, sendAll(&l, 10))
		l.ack(ackOf(7, 0, 10+ahead), 10+ahead)
		require.Equal(t, ahead > slack, len(sendAll(&l, 10+ahead)) > 0, "a packet sent %d ticks later arrived", ahead)
	}
}

// gapsOf returns the ticks between the first n+1 times that the only message of a channel is sent, from tick 1 on, and
// the tick of the last one. It calls begin at the beginning of each tick.
func gapsOf(t *testing.T, l *OutChannel, n int, begin func(now delta.Tick)) (gaps []delta.Tick, now delta.Tick) {
	t.Helper()
	now = 1
	require.Len(t, sendAll(l, now), 1)
	for before := now; len(gaps) < n; {
		now++
		if begin(now); len(sendAll(l, now)) > 0 {
			gaps, before = append(gaps, now-before), now
		}
	}
	return gaps, now
}

// TestProbesBecomeRare: without acks, messages are retransmitted ever more seldom, up to a limit;
// with the next ack, as soon as before.
func TestProbesBecomeRare(t *testing.T) {
	timeout := (&clock.RoundTrip{}).Timeout()
	var l OutChannel
	push(&l, 1, 1)
	gaps, now := gapsOf(t, &l, 6, func(delta.Tick) {})
	require.Equal(t, []delta.Tick{timeout + 1, 2*timeout + 1, 4*timeout + 1, 8*timeout + 1, 16*timeout + 1, 16*timeout + 1}, gaps)
	l.ack(ackOf(0, 0, 1), now)
	require.Empty(t, sendAll(&l, now+timeout))
	require.Len(t, sendAll(&l, now+timeout+1), 1)
}

// TestWhatAlwaysGetsLostBecomesRarer: after some retransmissions, a message that alone does not arrive is sent ever more
// seldom, up to a limit.
func TestWhatAlwaysGetsLostBecomesRarer(t *testing.T) {
	slack := (&clock.RoundTrip{}).Slack()
	var l OutChannel
	push(&l, 1, 1)
	gaps, _ := gapsOf(t, &l, usualSends+6, func(now delta.Tick) { l.ack(ackOf(0, 0, now-1), now) })
	for i, gap := range gaps[:usualSends] {
		require.Equal(t, slack+2, gap, "%d", i)
	}
	require.Equal(t, []delta.Tick{2*slack + 2, 4*slack + 2, 8*slack + 2, 16*slack + 2, 16*slack + 2, 16*slack + 2},
		gaps[usualSends:])
}

// TestAcksOfWhatWasNotSentAreRefused: a queued message that was not sent yet can't have arrived.
func TestAcksOfWhatWasNotSentAreRefused(t *testing.T) {
	for _, first := range []uint32{0, 1<<32 - 2} { // ids wrap
		l := OutChannel{First: first, Next: first, Unsent: first}
		push(&l, 2, 1)
		sendAll(&l, 1)
		push(&l, 2, 1) // these wait for a packet
		for sent := range uint32(3) {
			require.True(t, l.acceptable(ackOf(first+sent, 0, 1)), "all before %d", sent)
		}
		require.False(t, l.acceptable(ackOf(first+3, 0, 1)), "all before one that was not sent either")
		require.False(t, l.acceptable(ackOf(first+4, 0, 1)))
		require.True(t, l.acceptable(ackOf(first, 0b11, 1)))
		require.True(t, l.acceptable(ackOf(first+1, 0b1, 1)))
		require.False(t, l.acceptable(ackOf(first, 0b100, 1)))
		require.False(t, l.acceptable(ackOf(first+2, 0b1, 1)))
	}
}

// TestVeryLateAcksChangeNothing: an ack from before the last wire.MaxQueued messages shows nothing of
// those that are queued now.
func TestVeryLateAcksChangeNothing(t *testing.T) {
	const behind = wire.MaxQueued
	for _, first := range []uint32{5000, behind / 2} { // ids wrap
		l := OutChannel{First: first, Next: first, Unsent: first}
		push(&l, 1, 1)
		for now := delta.Tick(1); l.backoff == 0; now++ {
			sendAll(&l, now)
		}
		before := l
		require.False(t, l.ack(ackOf(first-behind-1, ^uint32(0), 30), 100))
		require.Equal(t, before, l)
		require.True(t, l.ack(ackOf(first-behind, 0, 30), 100), "this one is late, but may show something")
		require.Zero(t, l.backoff)
		require.False(t, l.at(first).arrived)
	}
}

// TestDependenciesAreSentAgainEverMoreRarely: what a message waits for may itself wait for bytes that the message
// takes.
func TestDependenciesAreSentAgainEverMoreRarely(t *testing.T) {
	var l OutChannel
	push(&l, 1, 1)
	l.begin(1, &clock.RoundTrip{})
	m := l.head()
	l.depend(m, []wire.Dependency{{Slot: 1, Tick: 1}, {Slot: 2, Tick: 1}})
	l.noteSent(l.First, 2)
	m.arrived = true
	var again []delta.Tick
	for now := delta.Tick(2); len(again) < 10; now++ {
		l.begin(now, &clock.RoundTrip{})
		open := 1 // one of them is acknowledged
		if l.stuck(m, open) {
			again = append(again, now-m.sent)
			l.noteSent(l.First, open)
		}
	}
	timeout := (&clock.RoundTrip{}).Timeout()
	for i, after := range again[1:] { // the first one only shows that there is one less
		require.Equal(t, stuckTimeouts*timeout<<min(i+1, maxRefreshBackoff)+1, after)
	}
	require.Equal(t, timeout+1, again[0])
}

// TestDependenciesOfTheMessageBeforeAreLeftOut, as messages are handled in order.
func TestDependenciesOfTheMessageBeforeAreLeftOut(t *testing.T) {
	var l OutChannel
	push(&l, 4, 1)
	has := func(id uint32, all, own []wire.Dependency) {
		m := l.at(id)
		l.depend(m, all)
		require.Equal(t, own, append([]wire.Dependency{}, l.deps.at(m.deps, int(m.count))...))
	}
	has(0, []wire.Dependency{{Slot: 3, Tick: 1}, {Slot: 7, Tick: 1}}, []wire.Dependency{{Slot: 3, Tick: 1}, {Slot: 7, Tick: 1}})
	has(1, []wire.Dependency{{Slot: 3, Tick: 1}, {Slot: 5, Tick: 2}, {Slot: 7, Tick: 1}}, []wire.Dependency{{Slot: 5, Tick: 2}})
	has(2, []wire.Dependency{{Slot: 2, Tick: 3}, {Slot: 5, Tick: 3}, {Slot: 7, Tick: 1}}, []wire.Dependency{{Slot: 2, Tick: 3}, {Slot: 5, Tick: 3}})
	has(3, []wire.Dependency{{Slot: 2, Tick: 3}}, []wire.Dependency{})
}
