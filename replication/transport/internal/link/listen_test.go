package link

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListenErrorsHaveWhatToDo(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EADDRINUSE: "choose another port", syscall.EADDRNOTAVAIL: "leave out the host", syscall.EACCES: "above 1023",
	} {
		err := ListenError(&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", errno)})
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, errno)
	}
	other := errors.New("something else")
	require.Equal(t, other, ListenError(other))
}
