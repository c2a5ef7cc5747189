package receive

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestWatchesRecordIndependently: each has what came since it was emptied itself, from when it was added on.
func TestWatchesRecordIndependently(t *testing.T) {
	rc := &Receiver{Replicas: ReplicaTable{Limit: 100}}
	note := func(slots ...uint32) {
		for _, slot := range slots {
			rc.Watches.noteSlot(slot, rc.Replicas.add(slot))
		}
		rc.Watches.notePacket(&wire.StateHeader{}, true)
	}
	note(1)
	require.EqualValues(t, 5, rc.Watches.keep(5))

	first, second := Watch{Keep: 7}, Watch{Keep: 6}
	rc.Watches.Add(&first)
	note(1, 2, 1)
	require.Equal(t, []uint32{1, 2}, first.Slots, "each once")
	rc.Watches.Add(&second)
	note(2, 3)
	require.Equal(t, []uint32{1, 2, 3}, first.Slots)
	require.Equal(t, []uint32{2, 3}, second.Slots)
	require.Len(t, first.Packets, 2)
	require.Len(t, second.Packets, 1)
	require.EqualValues(t, 7, rc.Watches.keep(5), "what asks for most gets it")

	first.Empty(&rc.Replicas)
	note(3)
	require.Equal(t, []uint32{3}, first.Slots)
	require.Equal(t, []uint32{2, 3}, second.Slots, "still those from before")
	second.Empty(&rc.Replicas)
	note(3)
	require.Equal(t, []uint32{3}, second.Slots)

	rc.Watches.noteForgotten()
	require.Equal(t, [2]int{1, 1}, [2]int{first.Sessions, second.Sessions})
	require.Empty(t, first.Packets)

	for range maxWatches - 2 {
		rc.Watches.Add(&Watch{})
	}
	require.Panics(t, func() { rc.Watches.Add(&Watch{}) })
}
