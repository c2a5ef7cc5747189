package main

import "github.com/arche-replicate/arche-replicate/replication/netsim"

// A port takes datagrams to the other end and brings those from there. It may
// lose, duplicate and reorder them.
type port interface {
	// write sends a datagram. The caller keeps the slice.
	write(packet []byte) error

	// read hands over what has arrived. The slices are fn's to keep.
	read(fn func(packet []byte))

	// written is how many datagrams were sent, and expect tells how many the
	// other end has sent: read waits a little for those still on the way.
	// Without expect it waits for none.
	written() uint64
	expect(total uint64)

	close()
}

// line is one end of a connection: bad weather on the way out, and a port.
// As both ends have weather on their way out, both directions do.
type line struct {
	out  *netsim.Pipe
	port port
}

func newLine(p port, seed uint64, weather netsim.Config) *line {
	return &line{out: netsim.NewPipe(seed, weather), port: p}
}

// send is the send hook of the library.
func (l *line) send(packet []byte) error { return l.out.Send(packet) }

// step starts a tick.
func (l *line) step() { l.out.Step() }

// receive hands over what has arrived.
func (l *line) receive(fn func(packet []byte)) { l.port.read(fn) }

// flush ends a tick: what is due goes out.
func (l *line) flush() {
	l.out.Receive(func(packet []byte) {
		// Whatever keeps a datagram from being sent, it is lost like others are.
		_ = l.port.write(packet)
	})
}

// heal ends the bad weather.
func (l *line) heal() { l.out.SetConfig(netsim.Config{}) }
