package link

import (
	"errors"
	"fmt"
	"syscall"
)

// ListenError makes a sentence, with what to do, of the error of a listener's socket.
func ListenError(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("is the server running already? End it, or choose another port: %w", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("this machine has no such address: leave out the host to listen at all that it has: %w", err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("the system does not allow it: choose a port above 1023: %w", err)
	}
	return err
}
