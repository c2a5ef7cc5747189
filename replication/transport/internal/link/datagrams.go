package link

import (
	"net/netip"
	"time"
)

const (
	mostWaiting = 32                     // datagrams in a connection of quic-go, of which the next one waits for room
	flushTime   = 200 * time.Millisecond // for which a connection that closes may wait for the network
)

// Flush waits until the datagrams of a connection of quic-go have left, as closing it drops those that wait. Empty
// ones, which both ends ignore, take the places of those that have left. done is closed with the connection.
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

// AddrPort returns that of a *net.UDPAddr, with IPv4 as such. Importing package net would make clients in browsers
// large.
func AddrPort(address any) netip.AddrPort {
	a, ok := address.(interface{ AddrPort() netip.AddrPort })
	if !ok {
		return netip.AddrPort{}
	}
	at := a.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
