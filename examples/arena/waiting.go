package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	dialTimeout = 2 * time.Second        // of an attempt
	dialAgain   = 200 * time.Millisecond // after one that failed
	remindEvery = 5 * time.Second        // while it waits
)

// waiting is the time of clients before the fight, with reminders on the screen.
type waiting struct {
	c        *config
	screen   *screen
	until    time.Time
	reminded time.Time
}

// left returns the remaining time.
func (w *waiting) left() time.Duration { return time.Until(w.until) }

// remind prints what it waits for, from time to time, and the first time also what to do.
func (w *waiting) remind(what, advice string) {
	if time.Since(w.reminded) < remindEvery {
		return
	}
	text := fmt.Sprintf("arena: waiting for %s, %v left", what, w.left().Round(time.Second))
	if w.reminded.IsZero() {
		text += "; " + advice
	}
	w.reminded = time.Now()
	w.screen.printLine(text)
}

// dial connects to the server, once there is one.
func (w *waiting) dial(ctx context.Context) (net.Conn, error) {
	at := w.c.connect
	for {
		dialer := net.Dialer{Timeout: dialTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", at)
		var address *net.AddrError
		var name *net.DNSError
		switch {
		case err == nil:
			w.reminded = time.Time{}
			return conn, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("interrupted before a server answered at %s: nothing was received", at)
		case errors.As(err, &address), errors.As(err, &name) && name.IsNotFound:
			return nil, err
		case w.left() <= 0:
			return nil, fmt.Errorf("no server answered at %s within %v: %w", at, w.c.wait, err)
		}
		w.remind("a server at "+at,
			fmt.Sprintf("start one with:\n  go run ./examples/arena -serve %s -clients %d", at, w.c.clients))
		select {
		case <-time.After(min(dialAgain, w.left())):
		case <-ctx.Done():
		}
	}
}

// begin waits for the server's first frame: the server may wait for other clients.
func (w *waiting) begin(ctx context.Context, ctl *control, expected int) error {
	for {
		const soon = time.Second / 5 // the usual time
		err := ctl.conn.SetReadDeadline(time.Now().Add(min(max(w.left(), time.Millisecond), soon)))
		if err == nil && ctx.Err() == nil {
			err = ctl.arrives()
		}
		switch {
		case ctx.Err() != nil:
			return errors.New("interrupted before the fight began: nothing was received")
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("the server has gone: %w", err)
		case w.left() <= 0:
			return fmt.Errorf("the server did not begin within %v: it waits for %s in all", w.c.wait, count(expected,
				"client"))
		}
		w.remind("the server to begin", "it waits for "+count(expected, "client")+" in all")
	}
}
