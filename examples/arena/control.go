package main

import (
	"bufio"
	"encoding/gob"
	"io"
	"net"
	"time"
)

// Beside the datagrams, which carry nothing but what the library sends, a server
// and a process of clients talk over TCP. This is how the clients learn what the
// server's world really was, and how both keep the same time when they run faster
// than the clock. A game needs none of it.
//
//	clients                      server
//	   | hello: UDP ports          |
//	   |-------------------------->|
//	   |         welcome: the rates|
//	   |<--------------------------|
//	   |   frame: what is true now,|   one per tick
//	   |    how many datagrams left|
//	   |<--------------------------|
//	   | reply: how it looks here, |
//	   | how many datagrams left   |
//	   |-------------------------->|
//	   |        last frame: results|
//	   |<--------------------------|

// controlMagic tells that both are this program, in versions that understand
// each other.
const controlMagic = "arena 3"

const (
	// maxPatience is for how long a silent process of clients is believed to be alive.
	maxPatience = 10 * time.Second
	// maxSilence is the same of a server, which may wait for other clients.
	maxSilence = 3 * maxPatience
)

// hello is the first message, from the clients.
type hello struct {
	Magic string
	Ports []uint16 // one UDP socket per client
}

// welcome is the answer.
type welcome struct {
	Refused            string // why not, if so
	TickRate, SendRate int
	Expected           int // clients with which the fight begins
}

// frame is a tick of the server.
type frame struct {
	Number   int
	Recorded bool   // it was replicated, as:
	Tick     uint32 // and this was new:
	Changes  []change
	Sent     []uint64 // datagrams to each client so far, if time does not matter
	Quiet    bool     // nothing changes any more, and the weather is fine
	Cost     cost
	Traffic  traffic // to these clients
	Result   *report // this is the end
}

// reply is the same tick as the clients saw it.
type reply struct {
	Number     int
	Sent       []uint64  // datagrams from each client so far
	Equal      []bool    // in quiet ticks: whether the world equals the server's
	Checks     []int     // of each client so far
	Mismatches []int     // that failed
	Views      []outlook // of each client
	Leaving    bool      // the clients leave before the end
}

// control is one end of such a conversation.
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

// send writes a message, soon or not at all.
func (c *control) send(message any) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(maxPatience)); err != nil {
		return err
	}
	if err := c.enc.Encode(message); err != nil {
		return err
	}
	return c.out.Flush()
}

// greeting reads the first message into a zero value, soon or not at all.
func (c *control) greeting(message any) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(maxPatience)); err != nil {
		return err
	}
	if err := c.dec.Decode(message); err != nil {
		return err
	}
	return c.conn.SetReadDeadline(time.Time{})
}

// receive reads a message into a zero value. It waits for as long as it takes, unless there is a
// deadline.
func (c *control) receive(message any) error { return c.dec.Decode(message) }

// arrives waits until a message begins to arrive, which receive then reads.
func (c *control) arrives() error {
	_, err := c.in.Peek(1)
	return err
}

// drain reads what comes and forgets it, until the other end closes the connection or time is up.
func (c *control) drain(limit time.Duration) {
	if c.conn.SetReadDeadline(time.Now().Add(limit)) == nil {
		_, _ = io.Copy(io.Discard, c.conn)
	}
}

func (c *control) close() { _ = c.conn.Close() }
