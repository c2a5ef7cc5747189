package session

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An Outlet knows how the send function of a peer or client fares.
type Outlet struct {
	Function func(packet []byte) error // of the user's
	Note     func(bytes int)           // gets the size of each packet
	refused  uint64                    // packets that it refused one after the other, up to the latest packet
	Last     error                     // of the latest packet that it refused
}

// Lend returns the outlet of a send function, and the function with which packets are sent: as a call of the guard's
// end. A packet is spoiled afterwards, errors are noted, and note is called with its size.
func Lend(
	calls *exclusive.Guard, note func(bytes int), send func(packet []byte) error,
) (*Outlet, func(packet []byte) error) {
	o := &Outlet{Function: send, Note: note}
	return o, calls.Lend(wire.Lent(func(packet []byte) error {
		n := len(packet)
		err := o.Function(packet)
		o.Note(n)
		if err == nil {
			o.refused = 0
			return nil
		}
		o.refused, o.Last = o.refused+1, err
		return err
	}))
}

// Refusal returns the error of the latest packet, nil if it was sent.
func (o *Outlet) Refusal() error {
	if o.refused == 0 {
		return nil
	}
	return o.Last
}
