package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// pty is a pseudo-terminal without a user.
type pty struct {
	master, slave *os.File

	mu   sync.Mutex
	text bytes.Buffer // everything written to it
}

func openPTY(t *testing.T, columns, rows uint16) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	control := func(request uintptr, arg unsafe.Pointer) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(arg))
		require.Zero(t, errno)
	}
	var locked, number int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = slave.Close() })
	p := &pty{master: master, slave: slave}
	p.resize(t, columns, rows)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			p.mu.Lock()
			p.text.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pty) resize(t *testing.T, columns, rows uint16) {
	size := [4]uint16{rows, columns}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, p.master.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size)))
	require.Zero(t, errno)
}

func (p *pty) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// all returns everything that was written, up to a last line.
func (p *pty) all(t *testing.T) string {
	const last = "that was all"
	_, err := fmt.Fprint(p.slave, last)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(p.String(), last) }, 5*time.Second, time.Millisecond)
	return strings.TrimSuffix(p.String(), last)
}

var sequence = regexp.MustCompile("\x1b\\[[?0-9;]*[A-Za-z]|\r\n|\r")

// requireNarrow checks what is written to a terminal of so many columns.
func requireNarrow(t *testing.T, text string, columns int) {
	t.Helper()
	for _, line := range sequence.Split(sgr.ReplaceAllString(text, ""), -1) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), columns, "%q", line)
	}
}

func TestATerminalShowsTheMatch(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("NO_COLOR", "")
	p := openPTY(t, 80, 24)
	require.Equal(t, exitOK, run(t.Context(), []string{"-http=", "-duration", "600ms", "-bots", "10", "-loss", "0.1"}, p.slave, io.Discard))
	text := p.all(t)
	requireNarrow(t, text, 80)
	require.Equal(t, 1, strings.Count(text, enterSequence))
	require.Equal(t, 1, strings.Count(text, leaveSequence))
	before, rest, _ := strings.Cut(text, enterSequence)
	frames, after, _ := strings.Cut(rest, leaveSequence)
	require.Contains(t, before, "link: 10 % lost")
	for _, part := range []string{"server: ", "client 1: 0 wrong", "10 % lost", "kbit/s", "as JSON", "0.0 of 0.6 s", "worlds equal: "} {
		require.Contains(t, sgr.ReplaceAllString(frames, ""), part)
	}
	require.Contains(t, frames, "\x1b["+codes[playerInk]+"m")
	require.Contains(t, after, "All worlds became equal")
	require.NotContains(t, after, "\x1b")
}

func TestATerminalIsAskedForItsSizeInEveryFrame(t *testing.T) {
	t.Setenv("TERM", "xterm")
	p := openPTY(t, 120, 40)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan int, 1)
	go func() { done <- run(ctx, []string{"-http=", "-duration", "1h", "-bots", "10"}, p.slave, io.Discard) }()
	frames := func(n int) {
		require.Eventually(t, func() bool { return strings.Count(p.String(), "\x1b[2J") == n }, 20*time.Second, time.Millisecond)
	}
	frames(1)
	p.resize(t, 50, 20)
	frames(2)
	stop()
	require.Equal(t, exitOK, <-done)
	text := p.all(t)
	requireNarrow(t, text[strings.LastIndex(text, "\x1b[2J"):], 50)
	require.NotContains(t, text[strings.LastIndex(text, "\x1b[2J"):], "\x1b[21;1H")
}

func TestAnInterruptGivesTheTerminalBack(t *testing.T) {
	t.Setenv("TERM", "xterm")
	serving, end := context.WithCancel(t.Context())
	defer end()
	address, _ := startServer(serving, t, "-bots", "10")
	for _, tt := range []struct {
		args  []string
		shown string
	}{
		{[]string{"-http=", "-duration", "1h"}, " behind"},
		{[]string{"-connect", address, "-clients", "1"}, "worlds equal"},
	} {
		p := openPTY(t, 80, 24)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := make(chan int, 1)
		go func() { done <- run(ctx, append(tt.args, "-bots", "10"), p.slave, io.Discard) }()
		require.Eventually(t, func() bool { return strings.Contains(p.String(), tt.shown) }, 20*time.Second, time.Millisecond)
		stop()
		require.Equal(t, exitOK, <-done)
		text := p.all(t)
		requireNarrow(t, text, 80)
		require.Equal(t, 1, strings.Count(text, enterSequence))
		require.Equal(t, 1, strings.Count(text, leaveSequence))
		require.Contains(t, text, "client 1: 0 ")
		_, after, _ := strings.Cut(text, leaveSequence)
		require.NotContains(t, after, "\x1b")
		require.Contains(t, after, "comparison")
	}
}

func TestAPanicGivesTheTerminalBack(t *testing.T) {
	t.Setenv("TERM", "xterm")
	p := openPTY(t, 80, 24)
	s := newScreen(p.slave)
	require.Panics(t, func() {
		defer s.leave()
		s.show(0, func() frame { return testPicture(t, 2) })
		panic("something is wrong")
	})
	text := p.all(t)
	require.Contains(t, text, enterSequence)
	require.True(t, strings.HasSuffix(text, leaveSequence))
}

func TestALimitedTerminalGetsPlainLines(t *testing.T) {
	t.Setenv("TERM", "dumb")
	p := openPTY(t, 80, 24)
	require.Equal(t, exitOK, run(t.Context(), []string{"-http=", "-duration", "1100ms", "-bots", "10"}, p.slave, io.Discard))
	text := p.all(t)
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, "  1.0 s  warm-up")
	requireNarrow(t, text, 80)
}

func TestColoursCanBeDisabled(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	p := openPTY(t, 80, 24)
	require.Equal(t, exitOK, run(t.Context(), []string{"-http=", "-duration", "300ms", "-bots", "10"}, p.slave, io.Discard))
	text := strings.ReplaceAll(p.all(t), leaveSequence, "")
	require.Contains(t, text, enterSequence)
	require.NotRegexp(t, sgr, text)
}
