package web

import (
	"errors"
	"fmt"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// Conn is the connection of a client to a server: one socket after the other, if
// need be. Its methods are for the goroutine of the client's loop.
type Conn struct{ link *link.Conn }

// Dial gives a client a connection to the [Handler] at a URL such as
// "https://game.example/play", and its send function. It does not wait for the
// server: Client.Frame connects, and Client.Err reports how that goes.
//
// In a browser, the URL may be relative to the page, such as "/play", and "" is the
// handler whose script the page has loaded. Elsewhere it has to be complete; ws and
// wss are the same as http and https.
//
// The error reports a URL that can't be one, and a page without the script. What a
// person has to mend, such as an origin that the server refuses, is returned by
// Client.Frame, as long as the client was never connected.
func Dial(url string, client *replication.Client, opts ...Option) (*Conn, error) {
	if client == nil {
		panic("web: Dial needs a client: replication.NewClient makes one")
	}
	o := settings(true, opts)
	d, err := newDialer(url)
	if err != nil {
		return nil, fmt.Errorf("web: dial %q: %w", url, err)
	}
	c := &Conn{link.NewConn("web", d.where, client, o.network, d.dial)}
	d.setMTU = c.link.SetMTU
	return c, nil
}

// Poll gives the client what has arrived. It never waits. Call it before
// Client.Frame.
func (c *Conn) Poll() { c.link.Poll() }

// Stats returns what the connection has counted.
func (c *Conn) Stats() transport.ConnStats { return c.link.Stats() }

// Close disconnects the client, which notifies the server, and closes the
// connection. The client's world stays as it is. It may wait for half a second; so
// don't call it within a function of js.FuncOf, which must not wait.
func (c *Conn) Close() error { return c.link.Close() }

// refusal is the error of a server that answers with an HTTP status and a text.
func refusal(status int, text, where string) error {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	err := fmt.Errorf("%s answers with the status %d: %s", where, status, text)
	switch {
	case status == 403 && text != "":
		err = fmt.Errorf("%s refuses this client: %s", where, text)
	case status == 404, status < 300:
		err = fmt.Errorf("at %s there is no game: is web.NewHandler's handler mounted under this path?", where)
	case status == 503 && text != "":
		return errors.New(text) // the handler's, for the moment
	case status == 408, status == 425, status == 429, status >= 500:
		return err
	}
	return link.Final(err)
}
