package playout

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
)

// TestFifoMatchesASlice: and its memory stays within what it held at most.
func TestFifoMatchesASlice(t *testing.T) {
	var f fifo[int]
	var slow []int
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		if rng.IntN(50) < 25 && len(slow) < 40 {
			f.push(i)
			slow = append(slow, i)
		} else if len(slow) > 0 {
			require.Equal(t, slow[0], *f.first())
			require.Equal(t, slow[0], f.pop())
			slow = slow[1:]
		}
		require.Equal(t, len(slow), f.len())
	}
	require.LessOrEqual(t, cap(f.items), 160)
}

func noReset(waitingMessage) bool { return false }

// TestTooManyMessagesDoNotWait: the ticks of messages are the server's word. However far ahead they are, they take no
// more memory than that of so many.
func TestTooManyMessagesDoNotWait(t *testing.T) {
	var m timeline
	now := delta.Tick(10)
	var handled []int
	q := &queue[int]{handle: func(n int) { handled = append(handled, n) }}
	for i := range maxWaiting + 3 {
		q.messages.push(i)
		m.push(waitingMessage{at: 1000, in: q})
	}
	var calls exclusive.Guard
	closed := false
	m.handle(&calls, &closed, noReset, now, false)
	require.Equal(t, []int{0, 1, 2}, handled)
	m.handle(&calls, &closed, noReset, now, false)
	require.Len(t, handled, 3)
	now = 1000
	m.handle(&calls, &closed, noReset, now, false)
	require.Len(t, handled, maxWaiting+3)
}

// TestAMessageThatPanicsIsNotHandledAgain: nor are those after it lost.
func TestAMessageThatPanicsIsNotHandledAgain(t *testing.T) {
	var m timeline
	now := delta.Tick(10)
	var handled []int
	q := &queue[int]{handle: func(n int) {
		handled = append(handled, n)
		if n == 0 {
			panic("of the user's")
		}
	}}
	for i := range 2 {
		q.messages.push(i)
		m.push(waitingMessage{at: 5, in: q})
	}
	var calls exclusive.Guard
	closed := false
	require.Panics(t, func() { m.handle(&calls, &closed, noReset, now, false) })
	m.handle(&calls, &closed, noReset, now, false)
	require.Equal(t, []int{0, 1}, handled)
}

// TestAClosedClientHandsOverNoMessages: none that waits for its tick, and none after one that closes the client.
func TestAClosedClientHandsOverNoMessages(t *testing.T) {
	var m timeline
	var calls exclusive.Guard
	handled, closed := 0, false
	q := &queue[int]{handle: func(n int) { handled, closed = handled+1, n == 1 }}
	for i := range 5 {
		q.messages.push(i)
		m.push(waitingMessage{at: 5, in: q})
	}
	m.handle(&calls, &closed, noReset, 10, false)
	require.Equal(t, 2, handled)
	m.handle(&calls, &closed, noReset, 10, true)
	require.Equal(t, 2, handled)
}
