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

// TestAnEndedClientIsLeftAlone: its socket fails, it leaves, and a new socket opens that it had asked for before.
func TestAnEndedClientIsLeftAlone(t *testing.T) {
	world := ecs.NewWorld()
	client := replication.NewClient(&world, replication.NewSchema())
	broken := make(chan struct{})
	dials := make(chan struct{}, 9)
	c := NewConn("test", "there", client, nil, func(context.Context) (ClientSocket, error) {
		dials <- struct{}{}
		return &brokenSocket{broken, make(chan struct{})}, nil
	})
	defer func() { require.NoError(t, c.Close()) }()
	play := func(n int) {
		for range n {
			c.Poll()
			_ = client.Frame(time.Second / 60)
			time.Sleep(time.Millisecond)
		}
	}
	play(30)
	<-dials
	close(broken)
	for len(dials) == 0 {
		play(1) // it asks for the next one
	}
	client.Disconnect(replication.Reason{Text: "I leave"})
	play(300)
	require.Equal(t, replication.StatusDisconnected, client.Status())
	client.Close()
	play(300)
}

// brokenSocket works until it is broken or closed.
type brokenSocket struct {
	broken chan struct{}
	closed chan struct{}
}

func (s *brokenSocket) Read() ([]byte, error) {
	select {
	case <-s.broken:
	case <-s.closed:
	}
	return nil, errors.New("broken")
}
func (s *brokenSocket) Write([]byte) error { return nil }
func (s *brokenSocket) Close(error)        { close(s.closed) }
