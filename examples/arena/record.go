package main

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// tape records a match in a file. A nil one records nothing.
type tape struct {
	file     *os.File
	recorder *recording.Recorder // nil before the fight
	reported bool
	phase    game.Phase
	waiting  []string // marks of the next tick
	result   recorded
}

// recorded is what the report has of a recording.
type recorded struct {
	File    string  `json:"file"`
	Seconds float64 `json:"seconds"`
	Bytes   uint64  `json:"bytes"`
	Marks   int     `json:"marks"`
	Dropped uint64  `json:"dropped_ticks"`   // since the file was written too slowly
	Error   string  `json:"error,omitempty"` // the file ends early
}

// openTape makes the file of a recording.
func openTape(path string) (*tape, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("nothing can be recorded: %w", err)
	}
	return &tape{file: file, result: recorded{File: path}}, nil
}

// begin begins to record a match.
func (t *tape) begin(m *match) {
	if t == nil {
		return
	}
	t.recorder = recording.NewRecorder(m.server, t.file,
		recording.WithMeta("bots", fmt.Sprint(m.c.bots)), recording.WithMeta("seed", fmt.Sprint(m.c.seed)),
		recording.WithMeta("ticks per second", fmt.Sprint(m.c.tickRate)),
		recording.WithMeta("recorded", time.Now().Format("2006-01-02 15:04")))
}

// follow puts what happened in a tick on the timeline, and prints an error of the file.
func (t *tape) follow(m *match, s *screen) {
	if t == nil || t.recorder == nil {
		return
	}
	if err := t.recorder.Err(); err != nil && !t.reported {
		t.reported = true
		s.printLine(fmt.Sprintf("arena: the match goes on, but its recording has ended: %v", err))
	}
	phase := m.host.Game.Match().Phase
	if phase != t.phase && phase == game.Over {
		t.mark("round over")
	}
	t.phase = phase
	for len(t.waiting) > 0 && t.recorder.Mark(t.waiting[0]) {
		t.waiting = t.waiting[1:]
		t.result.Marks++
	}
}

// mark puts a text on the timeline of the recording, or none if it is empty.
func (t *tape) mark(text string) {
	if t != nil && text != "" {
		t.waiting = append(t.waiting, text)
	}
}

// joined marks that a player has come, or has another name.
func (m *match) joined(p *replication.Peer, name string) {
	for _, g := range m.guests {
		if g.peer == p && g.name != name { // not after each break
			text := name + " joins"
			if g.name != "" {
				text = g.name + " is now " + name
			}
			g.name = name
			m.tape.mark(text)
		}
	}
}

// gone notes that a guest has left, and marks it if it was a player.
func (m *match) gone(g *guest) {
	g.left = m.ticks
	if g.name != "" {
		m.tape.mark(g.name + " left")
		g.name = ""
	}
}

// close ends the recording, and returns what it has; nil without one. It may be called twice.
func (t *tape) close(seconds float64) *recorded {
	if t == nil || t.file == nil {
		return nil
	}
	var err error
	if t.recorder != nil {
		err = t.recorder.Close()
		stats := t.recorder.Stats()
		t.result.Bytes, t.result.Dropped = stats.Bytes, stats.Dropped
	}
	if err = cmp.Or(err, t.file.Close()); err != nil {
		t.result.Error = err.Error()
	}
	t.file, t.recorder, t.result.Seconds = nil, nil, tenth(seconds)
	return &t.result
}

// text describes the recording for people.
func (r *recorded) text() string {
	if r.Error != "" {
		return fmt.Sprintf("The recording %s is not complete: %s", r.File, r.Error)
	}
	text := fmt.Sprintf("Recorded %.1f s in %s: %s, %.1f kbit/s, %s.", r.Seconds, r.File, count(r.Bytes, "byte"),
		8*per(float64(r.Bytes), r.Seconds)/1000, count(r.Marks, "mark"))
	if r.Dropped > 0 {
		text += fmt.Sprintf(" %s missing, since the file was written too slowly.", missing(r.Dropped))
	}
	return text + "\n  go run ./examples/arena -replay " + r.File
}

// missing counts ticks that are not there.
func missing(ticks uint64) string {
	if ticks == 1 {
		return "1 tick is"
	}
	return thousands(ticks) + " ticks are"
}
