package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// screen shows how it goes while it goes.
type screen struct {
	out      io.Writer // nil: nowhere
	terminal bool
	last     time.Time
}

// newScreen writes to out, in place if that is a terminal.
func newScreen(out io.Writer) *screen {
	s := &screen{out: out, last: time.Now()}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		s.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

// say prints a line.
func (s *screen) say(format string, args ...any) {
	if s.out != nil {
		s.print(fmt.Sprintf(format+"\n", args...))
	}
}

// status shows a line now and then, and asks for it only then.
func (s *screen) status(line func() string) {
	if s.out == nil {
		return
	}
	every := time.Second
	if s.terminal {
		every /= 10
	}
	if time.Since(s.last) < every {
		return
	}
	s.last = time.Now()
	if s.terminal {
		s.print("\r\x1b[K" + line())
		return
	}
	s.print(line() + "\n")
}

// done leaves the status line.
func (s *screen) done() {
	if s.out != nil && s.terminal {
		s.print("\r\x1b[K")
	}
}

// print writes text. A fight does not end because nobody can watch it.
func (s *screen) print(text string) { _, _ = io.WriteString(s.out, text) }

// status is what happens right now, in a line.
func (h *host) status(c *config, mismatches int) string {
	r := h.report(c)
	match := *h.game.status.Get(h.game.match)
	return fmt.Sprintf("%5.1f s  %s, ship %d leads with %d  %d entities  %d x %.1f kB/s, %.1f %% saved  %d wrong",
		float64(h.ticks)/float64(c.tickRate), match.Phase, match.Leader, match.Kills, r.Entities, r.Clients,
		r.BytesPerClientPerSecond/1000, 100*r.Saved, mismatches)
}

// mismatches is how many wrong entities the mirrors have shown.
func mismatches(mirrors []*mirror) int {
	n := 0
	for _, m := range mirrors {
		n += m.mismatches
	}
	return n
}
