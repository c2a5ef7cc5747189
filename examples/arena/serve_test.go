package main

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type outcome struct {
	result *report
	err    error
}

// startServer runs a server and returns its address.
func startServer(ctx context.Context, t *testing.T, args ...string) (address string, done <-chan outcome) {
	t.Helper()
	c := testConfig(t, append(args, "-serve", "127.0.0.1:0")...)
	listening := make(chan string, 1)
	c.onListen = func(address string) { listening <- address }
	results := make(chan outcome, 1)
	go func() {
		r, err := runServer(ctx, &c, &screen{})
		results <- outcome{r, err}
	}()
	select {
	case address = <-listening:
	case o := <-results:
		require.NoError(t, o.err)
		t.Fatal("the server ended before it began")
	}
	return address, results
}

// startClients runs a process of clients.
func startClients(ctx context.Context, t *testing.T, address string, args ...string) <-chan outcome {
	t.Helper()
	c := testConfig(t, append(args, "-connect", address)...)
	results := make(chan outcome, 1)
	go func() {
		r, err := runClients(ctx, &c, &screen{})
		results <- outcome{r, err}
	}()
	return results
}

func await(t *testing.T, done <-chan outcome) *report {
	t.Helper()
	select {
	case o := <-done:
		require.NoError(t, o.err)
		return o.result
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
		return nil
	}
}

func TestServerAndClientsAsProcesses(t *testing.T) {
	address, server := startServer(t.Context(), t, rough...)
	clients := startClients(t.Context(), t, address, rough...)
	requireMirrored(t, await(t, clients))
	r := await(t, server)
	requireMirrored(t, r)
	local := runOK(t, rough...)
	require.Equal(t, local.Tally, r.Tally, "the same fight as in one process")
}

func TestClientsInSeveralProcesses(t *testing.T) {
	address, server := startServer(t.Context(), t, rough...)
	one := startClients(t.Context(), t, address, "-clients", "1")
	two := startClients(t.Context(), t, address, "-clients", "2", "-seed", "9")
	a, b := await(t, one), await(t, two)
	require.Equal(t, 1, a.Clients)
	require.Equal(t, 2, b.Clients)
	require.True(t, a.Converged && b.Converged)
	require.Len(t, b.Rows, 2)
	requireMirrored(t, await(t, server))
}

func TestLateClientsCatchUp(t *testing.T) {
	address, server := startServer(t.Context(), t, "-duration", "1500ms", "-bots", "20", "-clients", "1")
	first := startClients(t.Context(), t, address, "-clients", "1")
	time.Sleep(700 * time.Millisecond)
	second := startClients(t.Context(), t, address, "-clients", "2")
	for _, done := range []<-chan outcome{first, second, server} {
		r := await(t, done)
		require.True(t, r.Converged)
		require.Zero(t, r.Mismatches)
	}
}

func TestClientsLeaveEarly(t *testing.T) {
	address, server := startServer(t.Context(), t, "-duration", "1h", "-bots", "10", "-clients", "1")
	ctx, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer leave()
	clients := startClients(ctx, t, address, "-clients", "1")
	r := await(t, clients)
	require.True(t, r.Interrupted)
	require.True(t, r.ok())
	r = await(t, server)
	require.True(t, r.Interrupted, "nobody is left to play for")
	require.True(t, r.ok())
}

func TestTheServerIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	address, server := startServer(ctx, t, "-bots", "10", "-clients", "1")
	clients := startClients(t.Context(), t, address, "-clients", "1")
	time.Sleep(300 * time.Millisecond)
	stop()
	for _, done := range []<-chan outcome{server, clients} {
		r := await(t, done)
		require.True(t, r.Interrupted)
		require.True(t, r.Converged, "the worlds are compared all the same")
	}
}

func TestNobodyComes(t *testing.T) {
	_, server := startServer(t.Context(), t, "-wait", "50ms", "-clients", "2")
	o := <-server
	require.EqualError(t, o.err, "0 of 2 clients came within 50ms")

	ctx, stop := context.WithCancel(t.Context())
	_, server = startServer(ctx, t)
	stop()
	require.True(t, await(t, server).ok())
}

func TestThereIsNoServer(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	o := <-startClients(t.Context(), t, address, "-wait", "50ms")
	require.Error(t, o.err)
}

func TestStrangersAreRejected(t *testing.T) {
	address, server := startServer(t.Context(), t, rough...)
	stranger, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = stranger.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	datagram, err := net.Dial("udp", address)
	require.NoError(t, err)
	_, err = datagram.Write([]byte("hello?"))
	require.NoError(t, err)

	other, err := net.Dial("tcp", address)
	require.NoError(t, err)
	ctl := newControl(other)
	require.NoError(t, ctl.send(hello{Magic: "arena 0", Ports: []uint16{1}}))
	var w welcome
	require.NoError(t, ctl.greeting(&w))
	require.Equal(t, `it speaks "arena 3", the clients "arena 0"`, w.Refused)

	requireMirrored(t, await(t, startClients(t.Context(), t, address, rough...)))
	requireMirrored(t, await(t, server))
	for _, conn := range []net.Conn{stranger, datagram, other} {
		_ = conn.Close()
	}
}
