package replication

import (
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Limits apply to the size of a message, not to the greatest size of its type: tests on both sides
// of every limit.

type mSwarm struct{ Of [200]ecs.Entity }

type mArmy struct{ Of [1000]ecs.Entity }

// TestZeroEntitiesTakeABit of an unreliable message, which has one packet, and of a reliable one,
// which has 128 fragments.
func TestZeroEntitiesTakeABit(t *testing.T) {
	const bits = 51 // that an entity may take besides the first one
	s := NewSchema()
	RegisterMessage[mSwarm](s, Unreliable())
	RegisterMessage[mArmy](s)
	x := connectedWire(t, s)
	e := x.spawn()
	x.rounds(3)
	mirror, ok := x.mirrored(e)
	require.True(t, ok)
	var got []int
	count := func(of []ecs.Entity, want ecs.Entity) (n int) {
		for _, e := range of {
			if !e.IsZero() {
				require.Equal(t, want, e)
				n++
			}
		}
		return n
	}
	OnServerMessage(x.client, func(m mSwarm) { got = append(got, count(m.Of[:], mirror)) })
	OnServerMessage(x.client, func(m mArmy) { got = append(got, count(m.Of[:], mirror)) })
	swarm := func(n int) (m mSwarm) {
		for i := range n {
			m.Of[(i*7)%200] = e
		}
		return m
	}
	army := func(n int) (m mArmy) {
		for i := range n {
			m.Of[(i*7)%1000] = e
		}
		return m
	}
	most := (1200-wire.MessageOverhead)*8/bits - 4 // 200 bits are less than 4 entities
	for wire.ByteSize(200+(most+1)*bits) <= 1200-wire.MessageOverhead {
		most++
	}
	require.Less(t, most, 200, "a limit to test")
	require.NoError(t, SendToClient(x.peer, swarm(0)))
	require.NoError(t, SendToClient(x.peer, swarm(most)))
	require.ErrorIs(t, SendToClient(x.peer, swarm(most+1)), ErrMessageTooLarge)
	for _, p := range x.replicate() {
		require.LessOrEqual(t, len(p), 1200)
		x.deliver(p)
	}
	require.NoError(t, x.client.Apply())
	require.Equal(t, []int{0, most}, got)

	got = nil
	x = connectedWire(t, s, WithMTU(64))
	e = x.spawn()
	x.rounds(5)
	mirror, ok = x.mirrored(e)
	require.True(t, ok)
	OnServerMessage(x.client, func(m mArmy) { got = append(got, count(m.Of[:], mirror)) })
	most = 0
	for wire.ByteSize(1000+(most+1)*bits) <= message.MaxFragments*(64-message.FragmentOverhead) {
		most++
	}
	require.Less(t, most, 1000, "a limit to test")
	require.NoError(t, SendToAll(x.server, army(0)))
	require.NoError(t, SendToAll(x.server, army(most)))
	require.ErrorIs(t, SendToAll(x.server, army(most+1)), ErrMessageTooLarge)
	x.rounds(60)
	require.Equal(t, []int{0, most}, got)
}

type mOrder struct {
	N    uint8
	Text string `repl:"max=4000"`
}

// TestShortInputsOfWideTypes are accepted like others; one that is too large gets an error, and
// takes no tick.
func TestShortInputsOfWideTypes(t *testing.T) {
	const room = 64 - 2 // 8 bits of a number, a bit for text without bytes above 127, a bit for other text, and the length of 4000
	s := NewSchema()
	RegisterInput[mOrder](s)
	x := connectedWire(t, s)
	x.restart(s, 8, WithMTU(256))
	x.rounds(5)
	most := 0
	for n := range room + 20 {
		x := connectedWire(t, s)
		if err := SetInput(x.client, x.client.InputTick(), mOrder{1, strings.Repeat("é", n/2) + strings.Repeat("x", n%2)}); err == nil {
			most = n
		} else {
			require.ErrorIs(t, err, ErrMessageTooLarge)
		}
	}
	require.Greater(t, most, room-10)
	require.Less(t, most, 64)
	fits := strings.Repeat("é", most/2) + strings.Repeat("x", most%2)
	tick := x.client.InputTick()
	err := SetInput(x.client, tick, mOrder{1, fits + "é"})
	require.ErrorIs(t, err, ErrMessageTooLarge)
	require.ErrorContains(t, err, "mOrder takes 6")
	require.ErrorContains(t, err, "and an input 64 at most")
	require.NoError(t, SetInput(x.client, tick, mOrder{2, fits}), "the tick has no input yet")
	require.ErrorIs(t, SetInput(x.client, tick, mOrder{3, ""}), ErrInputSet)
	got := map[uint32]mOrder{}
	want := map[uint32]mOrder{uint32(tick): {2, fits}}
	for i := range 40 {
		for _, p := range x.apply() {
			require.LessOrEqual(t, len(p), 256)
			if i%5 > 2 {
				x.answer(p)
			}
		}
		now := x.server.Tick() + 1
		if m, ok := Input[mOrder](x.peer, now); ok {
			got[uint32(now)] = m
		}
		x.deliver(x.replicate()...)
		m := mOrder{uint8(i), strings.Repeat(string(rune('a'+i%26)), i)}
		if at := x.client.InputTick(); SetInput(x.client, at, m) == nil {
			want[uint32(at)] = m
		}
	}
	require.Greater(t, len(got), 20)
	for at, m := range got {
		require.Equal(t, want[at], m, "tick %d", at)
	}
}

type mTooWide struct {
	A, B string `repl:"max=2048"`
}

// TestInputTypesHaveALimitOfTheirOwn, because many of their rows are kept.
func TestInputTypesHaveALimitOfTheirOwn(t *testing.T) {
	require.PanicsWithValue(t, "replication: mTooWide: an input of 24 to 32794 bits, where 512 are the most, and 32768 that its type may take: inputs are sent again and again; use ranges, and messages for what is rare",
		func() { RegisterInput[mTooWide](NewSchema()) })
	s := NewSchema()
	RegisterInput[mSeen](s)
	x := connectedWire(t, s)
	e := x.spawn()
	x.rounds(3)
	mirror, _ := x.mirrored(e)
	var in mSeen
	require.NoError(t, SetInput(x.client, x.client.InputTick(), in), "nobody")
	n, tick := 0, x.client.InputTick()+1
	for x.rounds(1); n < len(in.Of); n++ {
		in.Of[n] = mirror
		if err := SetInput(x.client, tick+Tick(n), in); err != nil {
			require.ErrorIs(t, err, ErrMessageTooLarge)
			break
		}
	}
	require.Greater(t, n, 9, "9 of the longest fit into 64 bytes")
	require.Less(t, n, 64)
}

type mSeen struct{ Of [64]ecs.Entity }
