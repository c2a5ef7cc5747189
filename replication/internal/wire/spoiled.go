package wire

import (
	"bytes"
	"errors"
)

// This file finds send functions that keep packets. The memory of a packet is used again when the send function
// returns. Before that, Lent spoils it, so that what was kept is not taken for some later packet, or for a damaged one.

// ErrOverwritten means that the send function of the other end kept the packet when it returned.
var ErrOverwritten = errors.New("replication: the packet was overwritten before it was sent: " +
	"the send function at the other end must copy a packet that it keeps")

// spoiled replaces the beginning of a packet. No packet of a session without checksums begins with this byte, as it has
// the kind of a welcome.
var spoiled = [8]byte{0xf8 | byte(KindWelcome), 'k', 'e', 'p', 't', 0xfe, 0xdc, 0xba}

// Lent returns a send function that spoils a packet after send.
func Lent(send func(packet []byte) error) func(packet []byte) error {
	return func(packet []byte) error {
		err := send(packet)
		copy(packet, spoiled[:])
		return err
	}
}

// Explain returns ErrOverwritten in place of the error about a packet that was spoiled.
func Explain(err error, packet []byte) error {
	if err != nil && len(packet) > 3 && bytes.HasPrefix(spoiled[:], packet[:min(len(packet), len(spoiled))]) {
		return ErrOverwritten
	}
	return err
}
