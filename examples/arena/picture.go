package main

import (
	"fmt"
	"math"

	"github.com/mlange-42/arche/ecs"
)

// picture is everything that can be shown of a moment of the fight.
type picture struct {
	c       *config
	ticks   int    // of the fight so far
	limit   int    // in ticks, or 0 if it goes on until interrupted
	views   []view // at least one; the first is shown if there is room for one only
	figures figures
}

// view is a world to show.
type view struct {
	title string
	world *ecs.World
}

// standing describes the best ship.
func (s *survey) standing() string {
	title, kills := s.leader()
	if title == "" {
		return "nobody ahead"
	}
	return fmt.Sprintf("%s ahead with %s", title, count(kills, "kill"))
}

// clock returns the time since the beginning.
func (p *picture) clock() string {
	seconds := func(ticks int) float64 { return float64(ticks) / float64(p.c.tickRate) }
	if p.limit == 0 {
		return fmt.Sprintf("%.1f s, Ctrl-C ends", seconds(p.ticks))
	}
	return fmt.Sprintf("%.1f of %.4g s", seconds(p.ticks), seconds(p.limit))
}

// savedOf returns the share of a rate that was saved, as text.
func (f *figures) savedOf(rate float64) string {
	if f.nobody {
		return "-"
	}
	return savedText(f.sent, rate)
}

// savedText returns which share of a rate in kbit/s is not sent; a dash where nothing, or next to nothing, is.
func savedText(sent, of float64) string {
	if share := 1 - sent/of; of > 0 && sent >= 0.5 && share < 0.9995 {
		return percent(share)
	}
	return "-"
}

// sentText formats a bandwidth of those who are there.
func (f *figures) sentText(format string) string {
	if f.nobody {
		return "-"
	}
	return fmt.Sprintf(format, f.sent)
}

// Sizes of a frame, in cells.
const (
	headRows    = 2
	figureRows  = 7
	enoughRows  = 10 // of a field with its edges; with less room there are fewer figures
	fewestRows  = 5  // with less room there is no field
	twoFields   = 64 // columns from which on there are two boxes side by side
	widestField = 3  // columns for each row; 2 is about square
)

// draw returns the lines of a frame.
func (p *picture) draw(columns, rows int, s style) []string {
	c := newCanvas(columns, rows, s)
	seen := look(p.views[0].world)
	p.drawHead(c, seen)
	below := rows - figureRows
	if below < headRows+enoughRows {
		below = rows - 1
		p.drawBrief(c, below)
	} else {
		p.drawFigures(c, below)
	}
	if below >= headRows+fewestRows {
		drawViews(c, box{0, headRows, columns, below - headRows}, p.views, seen)
	}
	return c.lines()
}

// drawHead shows the state of the match and of the link.
func (p *picture) drawHead(c *canvas, s *survey) {
	drawTitle(c, s, p.clock())
	x := c.write(1, 1, faintInk, "link ")
	c.write(x+2, 1, plainInk, p.c.link())
	if p.c.pageAddress != "" {
		c.writeRight(c.width, 1, strongInk, "  "+p.c.pageAddress+" ")
	}
}

// drawTitle shows the state of the match.
func drawTitle(c *canvas, s *survey, clock string) {
	x := c.write(1, 0, strongInk, "arena")
	c.write(x+2, 0, plainInk, fmt.Sprintf("%s, %d s left: %s", s.match.Phase, s.match.TimeLeft, s.standing()))
	c.writeRight(c.width, 0, strongInk, "  "+clock+" ")
}

// drawViews shows the views, side by side if there is room, and the best ships if there is room but
// only one view.
func drawViews(c *canvas, b box, views []view, first *survey) {
	full := b.width
	if full >= twoFields {
		b.width /= 2
	}
	b.width = min(b.width, widestField*(b.height-2)+2)
	b.height = min(b.height, b.width*3/4)
	c.drawField(c.frameBox(b, views[0].title, strongInk), first)
	if full < twoFields {
		return
	}
	next := box{b.x + b.width, b.y, min(b.width, full-b.width), b.height}
	if len(views) > 1 {
		c.drawField(c.frameBox(next, views[1].title, strongInk), look(views[1].world))
		return
	}
	inside := c.frameBox(next, "kills and deaths", strongInk)
	for i, ship := range first.ranking() {
		if i == inside.height {
			break
		}
		i, ink := inside.y+i, botInk
		if ship.name != "" {
			ink = playerInk
		}
		c.write(inside.x+1, i, ink, ship.title())
		c.writeRight(inside.x+inside.width-1, i, plainInk, fmt.Sprintf("  %4d %4d", ship.score.Kills,
			ship.score.Deaths))
	}
}

// drawFigures draws the lower part of a frame.
func (p *picture) drawFigures(c *canvas, y int) {
	f := &p.figures
	most := max(f.sent, f.raw, f.json)
	sent := "sent"
	if f.frames > 0 {
		sent = "received"
	}
	line := y
	for _, rate := range []struct {
		name  string
		kbits float64
		ink   ink
	}{{sent, f.sent, goodInk}, {"as snapshots", f.raw, plainInk}, {"as JSON", f.json, plainInk}} {
		if rate.kbits == 0 && f.frames > 0 {
			continue // not known to clients elsewhere
		}
		c.write(1, line, plainInk, rate.name)
		text := thousands(int(math.Round(rate.kbits)))
		if rate.name == sent && f.nobody {
			text = "-"
		}
		c.writeRight(29, line, rate.ink, text+" kbit/s")
		c.drawBar(31, line, c.width-32, rate.ink, rate.kbits/max(most, 1))
		line++
	}
	text := "saved " + f.savedOf(f.raw) + " of snapshots, "
	if f.frames > 0 {
		text = "saved "
	}
	c.write(1, line, plainInk, text+f.savedOf(f.json)+" of JSON")
	c.drawTrend(line, f.trend)
	line++

	x := c.write(1, line, plainInk, "round trip "+roundTripText(f.roundTrip, p.c.tickRate))
	if f.frames > 0 {
		text = fmt.Sprintf(", shown %d ms late, starved %s of %s", f.delay.Milliseconds(), thousands(f.starved),
			count(f.frames, "frame"))
	} else {
		text = fmt.Sprintf(", age of baselines %s, lost %s of %s", ageText(f.age), thousands(f.traffic.Lost),
			count(f.traffic.Packets, "packet"))
	}
	c.write(x, line, plainInk, text)
	ink, text := f.worlds()
	c.write(1, line+1, ink, text)
	drawLegend(c, line+2)
}

// worlds describes whether everything that clients showed was true so far.
func (f *figures) worlds() (ink, string) {
	switch {
	case f.elsewhere:
		return plainInk, "clients elsewhere compare their worlds with hashes of this one"
	case f.checks == 0:
		return plainInk, "no entity of a mirror was compared yet"
	case f.wrong > 0:
		return badInk, fmt.Sprintf("worlds differ: %s of %s wrong", thousands(f.wrong), count(f.checks,
			"compared entity"))
	default:
		return goodInk, fmt.Sprintf("worlds equal: %s compared, 0 wrong", thousands(f.checks)+" mirrored entities")
	}
}

// drawLegend explains the characters.
func drawLegend(c *canvas, y int) {
	g, x := c.style.glyphs(), 1
	for _, of := range []struct {
		glyphs []rune
		ink    ink
		name   string
	}{
		{g.player[:], playerInk, "players"},
		{g.bot[:], botInk, "bots"},
		{[]rune{g.wreck}, faintInk, "wrecks"},
		{[]rune{g.shot}, shotInk, "shots"},
		{[]rune{g.crate}, crateInk, "power-ups"},
	} {
		x = c.write(x, y, of.ink, string(of.glyphs))
		x = c.write(x+1, y, faintInk, of.name) + 2
	}
}

// drawBrief draws all figures that a small terminal has room for.
func (p *picture) drawBrief(c *canvas, y int) {
	f := &p.figures
	ink, _ := f.worlds()
	x := c.write(1, y, ink, fmt.Sprintf("%d wrong", f.wrong))
	c.write(x+2, y, plainInk, fmt.Sprintf("%s kbit/s, JSON %.0f, %s", f.sentText("%.0f"), f.json,
		roundTripText(f.roundTrip, p.c.tickRate)))
}

// drawBar fills a share of so many columns, at least one step of them unless the share is 0.
func (c *canvas) drawBar(x, y, columns int, i ink, share float64) {
	bar := c.style.glyphs().bar
	steps := int(max(0, min(share, 1)) * float64(max(columns, 0)*len(bar)))
	if share > 0 {
		steps = max(steps, 1)
	}
	for ; steps > 0; steps -= len(bar) {
		*c.at(x, y) = cell{bar[min(steps, len(bar))-1], i}
		x++
	}
}

// drawTrend shows the bandwidth of the latest half minute, at the right.
func (c *canvas) drawTrend(y int, trend []float64) {
	const label = "kbit/s so far "
	room := c.width - 48 - width(label)
	trend = trend[max(0, len(trend)-max(room, 0)):]
	if len(trend) < 2 {
		return
	}
	most := 0.0
	for _, rate := range trend {
		most = max(most, rate)
	}
	levels := c.style.glyphs().trend
	x := c.width - 1 - len(trend)
	c.writeRight(x, y, faintInk, label)
	for i, rate := range trend {
		level := int(rate / max(most, 1) * float64(len(levels)-1))
		*c.at(x+i, y) = cell{levels[level], goodInk}
	}
}
