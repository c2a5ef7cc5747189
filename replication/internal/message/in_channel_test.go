package message

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// staged returns a message of some bytes that arrived.
func staged(id uint32, bytes int) *StagedMessage {
	return &StagedMessage{ID: id, Bits: 8 * bytes, row: bitbuf.NewReader(make([]byte, bytes))}
}

// TestNewerPacketsReplaceDependencies: a message that arrives again waits for what its newest packet
// names, since the server leaves out what the client has acknowledged.
func TestNewerPacketsReplaceDependencies(t *testing.T) {
	many, few := []wire.Dependency{{Slot: 1, Tick: 4}, {Slot: 2, Tick: 4}}, []wire.Dependency{{Slot: 2, Tick: 4}}
	var l InChannel
	require.True(t, l.take(staged(0, 1), many, 5))
	require.False(t, l.take(staged(0, 1), nil, 4), "an older packet")
	require.Equal(t, many, l.at(0).deps)
	require.False(t, l.take(staged(0, 1), few, 9))
	require.Equal(t, few, l.at(0).deps)
	require.False(t, l.take(staged(0, 1), many, 5), "the first packet once more")
	require.Equal(t, few, l.at(0).deps)
}

func TestInChannelIsBounded(t *testing.T) {
	var l InChannel
	const half = MaxQueuedBytes / 2
	require.True(t, l.take(staged(1, half), nil, 0))
	require.False(t, l.take(staged(2, half+1), nil, 0), "too many bytes")
	require.False(t, l.at(2).have)
	require.True(t, l.take(staged(0, half), nil, 0))
	require.False(t, l.take(staged(2, 1), nil, 0))
	l.pop(1)
	require.True(t, l.take(staged(2, half), nil, 0), "there is room again")
	l.pop(2)
	require.Zero(t, l.Size)
}

// TestInChannelTakesIDsWithinReach: an honest sender has at most wire.MaxQueued messages on their way.
func TestInChannelTakesIDsWithinReach(t *testing.T) {
	for _, next := range []uint32{0, 1<<16 - 5, 1<<32 - 5} { // ids wrap
		l := InChannel{Next: next}
		for ahead, want := range map[int32]bool{-1: true, 0: true, wire.MaxQueued - 1: true, wire.MaxQueued: false} {
			id, ok := l.full(uint16(next + uint32(ahead)))
			require.Equal(t, next+uint32(ahead), id)
			require.Equal(t, want, ok, "%d ids ahead", ahead)
		}
	}
}

// TestFragmentsOfSeveralTypesAreNoMessage: fragments of a message have one type, and no other message
// stands between them.
func TestFragmentsOfSeveralTypesAreNoMessage(t *testing.T) {
	types := make([]schema.MessageType, 2)
	for i := range types {
		types[i].Layout = &delta.Component{}
	}
	fragments := func(last *StagedMessage) (next, bool) {
		var l InChannel
		first := staged(0, 0)
		first.Fragment = wire.MoreFragments
		require.True(t, l.take(first, nil, 0))
		_, ok := l.nextInOrder(types)
		require.False(t, ok, "the last fragment is missing")
		require.True(t, l.take(last, nil, 0))
		return l.nextInOrder(types)
	}
	for _, c := range []struct {
		number   int
		fragment wire.Fragment
		broken   bool
	}{{0, wire.LastFragment, false}, {1, wire.LastFragment, true}, {0, wire.Unfragmented, true}} {
		last := staged(1, 0)
		last.Number, last.Fragment = c.number, c.fragment
		n, ok := fragments(last)
		require.True(t, ok)
		require.Equal(t, c.broken, n.broken, "%+v", c)
	}
}
