package main

import (
	"fmt"
	"strings"
)

// plainHead is the heading of the rows that plainRow returns.
const plainHead = "   time  phase    leader (kills)      kbit/s  as JSON   saved  round trip  wrong"

func (p *picture) plainHead() string { return plainHead }

// plainRow returns a picture as one line, for output without a terminal.
func (p *picture) plainRow() string {
	s, f := look(p.views[0].world), &p.figures
	return fmt.Sprintf("%5.1f s  %-7s  %-17s  %7s  %7.0f  %6s  %10s  %5d",
		float64(p.ticks)/float64(p.c.tickRate), s.match.Phase, leaderText(s), f.sentText("%.1f"), f.json,
		f.savedOf(f.json), roundTripText(f.roundTrip, p.c.tickRate), f.wrong)
}

// leaderText names the best ship in at most 17 columns.
func leaderText(s *survey) string {
	leader, kills := s.leader()
	if leader == "" {
		return "nobody"
	}
	return fmt.Sprintf("%.12s (%d)", printable(leader), kills)
}

// printable removes control characters from text of another machine.
func printable(text string) string {
	c := &canvas{style: style{unicode: true}}
	return strings.Map(c.safe, text)
}
