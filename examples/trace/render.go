package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// render films an entity, draws the film to the file of -render, and returns the exit code.
func render(cfg config, src io.Reader, bar *progressBar, stdout, stderr io.Writer) int {
	data, err := io.ReadAll(src)
	if err != nil {
		return complain(stderr, &fault{file: cfg.name(), reason: "cannot be read: " + err.Error()})
	}
	f, err := shoot(cfg, data, bar.tick)
	bar.done()
	if err != nil {
		return complain(stderr, err)
	}
	c, err := newChart(cfg, f)
	if err != nil {
		return complain(stderr, err)
	}
	if err := os.WriteFile(cfg.render, c.svg(), 0o644); err != nil {
		return complain(stderr, err)
	}
	fmt.Fprintf(stdout, "%s: %s\n%s\n", cfg.render, c.heading, c.subheading)
	for _, text := range f.faults.first {
		fmt.Fprintln(stderr, "mismatch:", text)
	}
	if f.faults.count > 0 {
		return exitWrong
	}
	return exitOK
}

// chart is what a picture shows of a film: lines over time, in seconds from the beginning of the trace on.
type chart struct {
	heading, subheading string
	begin, end          float64
	panels              []panel
}

// panel is a part of a picture with a scale of its own.
type panel struct {
	name  string
	lines []line
}

// line is a graph. It has a gap where the entity was not there.
type line struct {
	class  string // of the stylesheet
	points []dot
}

// dot is a point of a line. A value that is not a number is a gap.
type dot struct{ time, value float64 }

// The classes of lines.
const (
	classTruth  = "truth"
	classNewest = "newest"
	classShown  = "shown"
)

// newChart chooses the part of a film that is drawn.
func newChart(cfg config, f *film) (*chart, error) {
	c := &chart{}
	c.begin = cfg.from.Seconds()
	if !cfg.fromChosen {
		c.begin = f.liveliest(cfg.span.Seconds())
	}
	c.end = min(c.begin+cfg.span.Seconds(), float64(len(f.truth)-1)/f.rate)
	for i, name := range f.axes.names {
		c.panels = append(c.panels, panel{name, f.paths(i)})
	}
	c.panels = append(c.panels, panel{"distance from the true path", f.errors()})
	delay, frames := 0.0, 0
	for i := range c.panels {
		for j := range c.panels[i].lines {
			c.panels[i].lines[j].cut(c.begin, c.end)
		}
	}
	for _, fr := range f.frames {
		if t := fr.time / f.rate; fr.alive && t >= c.begin && t <= c.end {
			delay, frames = delay+(fr.time-fr.shown)/f.rate, frames+1
		}
	}
	if frames == 0 || c.end <= c.begin {
		return nil, fmt.Errorf("entity %s of %s is not to be seen between %.2f s and %.2f s", f.name, cfg.name(),
			c.begin, max(c.begin, c.end))
	}
	c.heading = fmt.Sprintf("%s, entity %s: %s ticks and %s frames per second", filepath.Base(cfg.name()),
		f.name, number(f.rate), number(cfg.fps))
	c.subheading = fmt.Sprintf("%s %% lost, %s %% doubled, %s %% held back, %.0f ms one way; "+
		"interpolation is %.0f ms behind the server, %.2f %% of frames starved",
		number(100*cfg.loss), number(100*cfg.dup), number(100*cfg.reorder),
		1000*f.oneWay/f.rate, 1000*delay/float64(frames),
		100*float64(f.stats.Starved)/float64(max(f.stats.Frames, 1)))
	return c, nil
}

// paths returns the lines of an axis.
func (f *film) paths(axis int) []line {
	truth, newest, drawn := line{class: classTruth}, line{class: classNewest}, line{class: classShown}
	for i, t := range f.truth {
		truth.add(float64(i)/f.rate, t.at[axis], t.alive)
	}
	for _, fr := range f.frames {
		newest.add(fr.time/f.rate, fr.newest[axis], fr.alive)
		drawn.add(fr.time/f.rate, fr.drawn[axis], fr.alive)
	}
	return []line{truth, newest, drawn}
}

// errors returns how far the entity was shown from the truth: by interpolation at the moment that it showed, by the
// newest state at the moment at which the fastest packets left that arrived with the frame.
func (f *film) errors() []line {
	newest, drawn := line{class: classNewest}, line{class: classShown}
	for _, fr := range f.frames {
		then, ok1 := f.truthAt(fr.time - f.oneWay)
		shown, ok2 := f.truthAt(fr.shown)
		newest.add(fr.time/f.rate, fr.newest.distance(then), fr.alive && ok1)
		drawn.add(fr.time/f.rate, fr.drawn.distance(shown), fr.alive && ok2)
	}
	return []line{newest, drawn}
}

func (l *line) add(time, value float64, ok bool) {
	if !ok || math.IsInf(value, 0) {
		value = math.NaN()
	}
	l.points = append(l.points, dot{time, value})
}

// cut removes what is not between two times.
func (l *line) cut(begin, end float64) {
	kept := l.points[:0]
	for _, p := range l.points {
		if p.time >= begin && p.time <= end {
			kept = append(kept, p)
		}
	}
	l.points = kept
}

// settling is the time in seconds in which interpolation learns how much delay the network needs. A picture begins
// after it if the trace is long enough.
const settling = 2

// liveliest returns the time, in seconds, at which the part of the film begins in which the entity goes the longest
// way.
func (f *film) liveliest(span float64) float64 {
	length := max(int(span*f.rate), 1)
	begin := int(settling * f.rate)
	if begin+length > len(f.truth)-1 {
		return max(float64(len(f.truth)-1)/f.rate-span, 0)
	}
	way := 0.0
	ways := make([]float64, len(f.truth)) // from the first tick on
	for i := 1; i < len(f.truth); i++ {
		if f.truth[i-1].alive && f.truth[i].alive {
			way += f.truth[i].at.distance(f.truth[i-1].at)
		}
		ways[i] = way
	}
	for i := begin; i+length < len(ways); i++ {
		if ways[i+length]-ways[i] > ways[begin+length]-ways[begin] {
			begin = i
		}
	}
	return float64(begin) / f.rate
}
