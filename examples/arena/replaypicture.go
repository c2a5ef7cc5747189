package main

import (
	"fmt"
	"time"
)

// replayPicture is everything that a terminal shows of a moment of a recording.
type replayPicture struct {
	name   string
	at, of time.Duration
	view   view
	kbits  float64 // of the recording at that moment
	mark   string  // the latest
	damage string
}

// picture returns what there is to see.
func (r *replay) picture(latest string) *replayPicture {
	stats := r.player.Client().Stats()
	p := &replayPicture{
		name: r.name, at: r.player.Position(), of: r.player.Duration(), mark: latest,
		view: view{"replay: " + count(stats.Spawns-stats.Despawns, "entity"), &r.world},
	}
	segments := r.player.Segments()
	for i, s := range segments {
		end := p.of
		if i+1 < len(segments) {
			end = segments[i+1].At
		}
		if s.At <= p.at && end > s.At {
			p.kbits = 8 * float64(s.Bytes) / 1000 / (end - s.At).Seconds()
		}
	}
	if err := r.player.Damage(); err != nil {
		p.damage = trim(err)
	}
	return p
}

func (p *replayPicture) draw(columns, rows int, s style) []string {
	c := newCanvas(columns, rows, s)
	seen := look(p.view.world)
	drawTitle(c, seen, fmt.Sprintf("%s of %s", clock(p.at), clock(p.of)))
	x := c.write(1, 1, faintInk, "file ")
	x = c.write(x+2, 1, plainInk, fmt.Sprintf("%s, %.0f kbit/s", p.name, p.kbits))
	if p.mark != "" {
		c.write(x, 1, plainInk, ", last mark: "+p.mark)
	}
	below := rows - 1
	if p.damage != "" {
		below--
		c.write(1, below+1, badInk, p.damage)
	}
	if below >= headRows+fewestRows {
		drawViews(c, box{0, headRows, columns, below - headRows}, []view{p.view}, seen)
		drawLegend(c, below)
	}
	return c.lines()
}

func (p *replayPicture) plainHead() string {
	return "      time  phase    leader (kills)     entities  kbit/s  last mark"
}

func (p *replayPicture) plainRow() string {
	s := look(p.view.world)
	return fmt.Sprintf("%10s  %-7s  %-17s  %8d  %6.0f  %.40s", clock(p.at), s.match.Phase, leaderText(s),
		len(s.ships)+len(s.shots)+len(s.crates), p.kbits, printable(p.mark))
}
