package main

import (
	"bufio"
	"encoding/gob"
	"io"
	"net"
	"time"
)

// Besides the datagrams, which carry only the library's packets, a server and a process of clients
// exchange messages over TCP. These give the clients the true state of the server's world, and keep
// both ends in the same tick when they run faster than real time. A game needs none of this.
//
//	clients                      server
//	   | hello: UDP ports          |
//	   |-------------------------->|
//	   |         welcome: the rates|
//	   |<--------------------------|
//	   |     frame: the true state,|   one per tick
//	   |    how many datagrams left|
//	   |<--------------------------|
//	   | reply: what clients show, |
//	   | how many datagrams left   |
//	   |-------------------------->|
//	   |        last frame: results|
//	   |<--------------------------|

// controlMagic identifies this program, in versions that understand each other.
const controlMagic = "arena 3"

const (
	// maxPatience is how long a process of clients may be silent before it is dropped.
	maxPatience = 10 * time.Second
	// maxStall is how long the game waits for one that does not read what it is sent.
	maxStall = time.Second
	// maxSilence is the same for a server, which may wait for other clients.
	maxSilence = 3 * maxPatience
)

// hello is the first message, from the clients.
type hello struct {
	Magic string
	Ports []uint16 // one UDP socket per client
}

// welcome is the answer.
type welcome struct {
	Refused            string // the reason, if refused
	TickRate, SendRate int
	Expected           int // number of clients with which the fight begins
}

// frame is a tick of the server.
type frame struct {
	Number   int
	Recorded bool   // the tick was replicated, as:
	Tick     uint32 // this server tick, and with these:
	Changes  []change
	Sent     []uint64 // datagrams to each client so far, in lockstep
	Quiet    bool     // nothing changes any more, and the network is perfect
	Cost     cost
	Traffic  traffic // to these clients
	Result   *report // set in the last frame
}

// reply is the same tick on the clients.
type reply struct {
	Number     int
	Sent       []uint64  // datagrams from each client so far
	Equal      []bool    // in quiet ticks: whether the world equals the server's
	Checks     []int     // of each client so far
	Mismatches []int     // that failed
	Views      []outlook // of each client
	Leaving    bool      // the clients leave before the end
}

// control is one end of such a connection.
type control struct {
	conn net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
	enc  *gob.Encoder
	dec  *gob.Decoder
}

func newControl(conn net.Conn) *control {
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	return &control{conn, in, out, gob.NewEncoder(out), gob.NewDecoder(in)}
}

// send writes a message, or fails after a short time.
func (c *control) send(message any) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(maxStall)); err != nil {
		return err
	}
	if err := c.enc.Encode(message); err != nil {
		return err
	}
	return c.out.Flush()
}

// greeting reads the first message into a zero value, or fails after a short time.
func (c *control) greeting(message any) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(maxPatience)); err != nil {
		return err
	}
	if err := c.dec.Decode(message); err != nil {
		return err
	}
	return c.conn.SetReadDeadline(time.Time{})
}

// receive reads a message into a zero value. It waits without limit unless there is a deadline.
func (c *control) receive(message any) error { return c.dec.Decode(message) }

// arrives waits for the beginning of a message, which receive then reads.
func (c *control) arrives() error {
	_, err := c.in.Peek(1)
	return err
}

// drain reads and discards everything until the other end closes the connection or time is up.
func (c *control) drain(limit time.Duration) {
	if c.conn.SetReadDeadline(time.Now().Add(limit)) == nil {
		_, _ = io.Copy(io.Discard, c.conn)
	}
}

func (c *control) close() { _ = c.conn.Close() }
