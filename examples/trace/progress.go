package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progressBar tells whoever waits how far the replay is: on a terminal in one
// line that is written over, elsewhere in a line now and then.
type progressBar struct {
	w        io.Writer
	terminal bool
	every    time.Duration
	began    time.Time
	last     time.Time
	drawn    bool
}

func newProgressBar(w io.Writer) *progressBar {
	p := &progressBar{w: w, every: 5 * time.Second, began: time.Now()}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if p.terminal {
		p.every = 200 * time.Millisecond
	}
	p.last = p.began
	return p
}

// tick is told of every tick played.
func (p *progressBar) tick(tick int64, live int) {
	now := time.Now()
	if now.Sub(p.last) < p.every {
		return
	}
	p.last, p.drawn = now, true
	text := fmt.Sprintf("tick %d, %d entities, %.0f s", tick+1, live, now.Sub(p.began).Seconds())
	if p.terminal {
		fmt.Fprintf(p.w, "\r%-60s", text)
	} else {
		fmt.Fprintln(p.w, text)
	}
}

// done wipes the line.
func (p *progressBar) done() {
	if p.terminal && p.drawn {
		fmt.Fprintf(p.w, "\r%60s\r", "")
	}
}
