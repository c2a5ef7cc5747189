package link

import "time"

const (
	mostWaiting = 32                     // datagrams in a connection of quic-go, of which the next one waits for room
	flushTime   = 200 * time.Millisecond // for which a connection that closes may wait for the network
)

// Flush waits until the datagrams of a connection of quic-go have left, as closing it drops those that wait. Empty ones,
// which both ends ignore, take the places of those that have left. done is closed with the connection.
func Flush(send func(datagram []byte) error, done <-chan struct{}) {
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for range mostWaiting {
			if send(nil) != nil {
				return
			}
		}
	}()
	select {
	case <-flushed:
	case <-done:
	case <-time.After(flushTime):
	}
}
