package link

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ListenUDP opens the socket of a listener. Its error says what to do.
func ListenUDP(address string) (*net.UDPConn, error) {
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("give an address such as :9000 or 127.0.0.1:9000: %w", err)
	}
	socket, err := net.ListenUDP("udp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		err = fmt.Errorf("is the server running already? End it, or choose another port: %w", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		err = fmt.Errorf("this machine has no such address: leave out the host to listen at all that it has: %w", err)
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("the system does not allow it: choose a port above 1023: %w", err)
	}
	return socket, err
}
