package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progressBar shows the progress of the replay: on a terminal in one line that is overwritten,
// elsewhere in a line from time to time.
type progressBar struct {
	w        io.Writer
	terminal bool
	label    string // names the replay, if there are many
	width    int    // of the widest text drawn
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

// tick is called for every tick played.
func (p *progressBar) tick(tick int64, live int) {
	now := time.Now()
	if now.Sub(p.last) < p.every {
		return
	}
	p.last, p.drawn = now, true
	text := p.label + fmt.Sprintf("tick %d, %d entities, %.0f s", tick+1, live, now.Sub(p.began).Seconds())
	if p.terminal {
		p.width = max(p.width, len(text), 60)
		fmt.Fprintf(p.w, "\r%-*s", p.width, text)
	} else {
		fmt.Fprintln(p.w, text)
	}
}

// done clears the line.
func (p *progressBar) done() {
	if p.terminal && p.drawn {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
	}
}
