package link

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ListenUDP opens the socket of a listener of a transport. Its error is a sentence with what to do.
func ListenUDP(name, address string) (*net.UDPConn, error) {
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: listen at %q: give an address such as :9000 or 127.0.0.1:9000: %w", name, address, err)
	}
	socket, err := net.ListenUDP("udp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		err = fmt.Errorf("%s: listen at %q: the port is in use: is the server running already? End it, "+
			"or choose another port: %w", name, address, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		err = fmt.Errorf("%s: listen at %q: this is not an address of this machine: leave out the host to listen at all "+
			"that it has: %w", name, address, err)
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("%s: listen at %q: the system does not allow it: choose a port above 1023: %w", name, address, err)
	case err != nil:
		err = fmt.Errorf("%s: listen at %q: %w", name, address, err)
	}
	return socket, err
}
