package link

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// waiting is a socket whose packets wait until they are pulled.
type waiting struct {
	packets chan []byte
	ended   chan error
}

func (w *waiting) Read() ([]byte, error) { return nil, <-w.ended }
func (w *waiting) Write([]byte) error    { return nil }
func (w *waiting) Dropped() uint64       { return 3 }

func (w *waiting) Close(error) {
	select {
	case w.ended <- errors.New("closed here"):
	default:
	}
}

func (w *waiting) Pull() []byte {
	select {
	case p := <-w.packets:
		return p
	default:
		return nil
	}
}

// TestPacketsThatWaitInTheSocket are pulled by Poll, and at the end of the socket: the last ones are the reason.
func TestPacketsThatWaitInTheSocket(t *testing.T) {
	world := ecs.NewWorld()
	client := replication.NewClient(&world, replication.NewSchema())
	w := &waiting{packets: make(chan []byte, 9), ended: make(chan error, 1)}
	dials := make(chan struct{}, 9)
	c := NewConn("test", "nowhere", client, nil, func(context.Context) (ClientSocket, error) {
		dials <- struct{}{}
		return w, nil
	})
	require.NoError(t, client.Frame(time.Second))
	<-dials
	w.packets <- []byte{1}
	w.packets <- []byte{2}
	for end := time.Now().Add(10 * time.Second); c.Stats().Received < 2 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.Poll()
	}
	require.EqualValues(t, 2, c.Stats().Received)
	require.EqualValues(t, 3, c.Stats().InboxFull)
	w.packets <- []byte{3}
	w.ended <- errors.New("over")
	require.Eventually(t, func() bool { return c.Stats().Failures == 1 }, 10*time.Second, time.Millisecond)
	require.EqualValues(t, 3, c.Stats().Received)
	require.EqualValues(t, 3, c.Stats().InboxFull)
	require.NoError(t, c.Close())
}
