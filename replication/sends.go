package replication

import (
	"errors"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// sends knows how the send function of a peer or client fares.
type sends struct {
	send func(packet []byte) error
	row  uint64 // packets that it refused one after the other, up to the latest packet
	last error  // of the latest packet that it refused
}

// lend returns the function with which packets are sent: send, as a call of the guard's end. A packet is spoiled
// afterwards, errors are noted, and watchers are called.
func lend(
	calls *exclusive.Guard, watchers *seam.Watchers, send func(packet []byte) error,
) (*sends, func(packet []byte) error) {
	s := &sends{send: send}
	return s, calls.Lend(wire.Lent(func(packet []byte) error {
		n := len(packet)
		err := s.send(packet)
		watchers.Note(seam.Sent, n)
		if err == nil {
			s.row = 0
			return nil
		}
		s.row, s.last = s.row+1, err
		return err
	}))
}

// notAttached is the send function of a client that has none yet.
func notAttached([]byte) error {
	return errors.New("the client has no send function yet: dial a transport, or call SetSend")
}

// refusal returns the error of the latest packet, nil if it was sent.
func (s *sends) refusal() error {
	if s.row == 0 {
		return nil
	}
	return s.last
}
