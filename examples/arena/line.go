package main

import "github.com/arche-replicate/arche-replicate/replication/netsim"

// A port sends datagrams to the other end and receives those from there. It may lose, duplicate and
// reorder them.
type port interface {
	// write sends a datagram. The caller keeps the slice.
	write(packet []byte) error

	// read calls fn with the datagrams that have arrived. fn may keep the slices.
	read(fn func(packet []byte))

	// written returns how many datagrams were sent, and expect sets how many the other end has
	// sent: read then waits a little for those still in flight. Without expect it does not wait.
	written() uint64
	expect(total uint64)

	close()
}

// line is one end of a connection: a simulated network for outgoing packets, and a port. Both ends
// have one, so both directions are simulated.
type line struct {
	out  *netsim.Pipe
	port port
}

func newLine(p port, seed uint64, weather netsim.Config) *line {
	return &line{out: netsim.NewPipe(seed, weather), port: p}
}

// send is the send function of the library.
func (l *line) send(packet []byte) error { return l.out.Send(packet) }

// step starts a tick.
func (l *line) step() { l.out.Step() }

// receive calls fn with the packets that have arrived.
func (l *line) receive(fn func(packet []byte)) { l.port.read(fn) }

// flush ends a tick: it sends the packets whose delay is over.
func (l *line) flush() {
	l.out.Receive(func(packet []byte) {
		// A datagram that can't be sent counts as lost.
		_ = l.port.write(packet)
	})
}

// heal makes the simulated network perfect.
func (l *line) heal() { l.out.SetConfig(netsim.Config{}) }
