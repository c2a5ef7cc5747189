package interpolation

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
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

// waitFor makes messages wait, numbered from 0.
func (w *timeline) waitFor(n int, at delta.Tick) {
	for i := range n {
		w.push(waitingMessage{at: at, number: i})
	}
}

// TestTooManyMessagesDoNotWait: the ticks of messages are the server's word. However far ahead they are, they take no
// more memory than that of so many.
func TestTooManyMessagesDoNotWait(t *testing.T) {
	var w timeline
	w.waitFor(maxWaiting+3, 1000)
	var handled []int
	took := func(m waitingMessage) { handled = append(handled, m.number) }
	closed := false
	w.deliver(10, false, &closed, took)
	require.Equal(t, []int{0, 1, 2}, handled)
	w.deliver(10, false, &closed, took)
	require.Len(t, handled, 3)
	w.deliver(1000, false, &closed, took)
	require.Len(t, handled, maxWaiting+3)
}

// TestAMessageThatPanicsIsNotHandledAgain: nor are those after it lost.
func TestAMessageThatPanicsIsNotHandledAgain(t *testing.T) {
	var w timeline
	w.waitFor(2, 5)
	var handled []int
	took := func(m waitingMessage) {
		handled = append(handled, m.number)
		if m.number == 0 {
			panic("of the user's")
		}
	}
	closed := false
	require.Panics(t, func() { w.deliver(10, false, &closed, took) })
	w.deliver(10, false, &closed, took)
	require.Equal(t, []int{0, 1}, handled)
}

// TestAClosedClientHandsOverNoMessages: none that waits for its tick, and none after one that closes the client.
func TestAClosedClientHandsOverNoMessages(t *testing.T) {
	var w timeline
	w.waitFor(5, 5)
	handled, closed := 0, false
	took := func(m waitingMessage) { handled, closed = handled+1, m.number == 1 }
	w.deliver(10, false, &closed, took)
	require.Equal(t, 2, handled)
	w.deliver(10, true, &closed, took)
	require.Equal(t, 2, handled)
}

// TestAQueueKeepsTheOrderOfValues, and forgets what was taken.
func TestAQueueKeepsTheOrderOfValues(t *testing.T) {
	var q queue
	var next, taken int
	value := reflect.New(reflect.TypeFor[string]()).Elem()
	for round := range 40 {
		for range round % 7 {
			q.push(reflect.ValueOf(strconv.Itoa(next)))
			next++
		}
		for range min(q.n, round%5) {
			q.pop(value)
			require.Equal(t, strconv.Itoa(taken), value.String())
			taken++
		}
	}
	require.Greater(t, taken, 70)
	for q.n > 0 {
		q.pop(value)
	}
	for i := range q.ring.Len() {
		require.Empty(t, q.ring.Index(i).String())
	}
}
