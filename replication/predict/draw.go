package predict

import (
	"time"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/spring"
)

// A drawing writes into the world what is to be drawn: what was simulated for the two ticks around the time of
// predictions, and what is left of corrections. The simulation never sees it: it goes back to its own values first.
type drawing struct {
	sim   *simulation
	any   bool          // there was a frame
	fades []spring.Rows // by column
}

func (d *drawing) drop() {
	d.any = false
	for i := range d.fades {
		d.fades[i].StopAll()
	}
}

// keep copies what was drawn in the last frame.
func (d *drawing) keep() {
	if !d.any {
		return
	}
	for i := range d.sim.rows {
		r := &d.sim.rows[i]
		r.kept = 0
		if r.entity.IsZero() || r.parked || !r.drawn {
			continue
		}
		for n, c := range d.sim.columns {
			if !d.fades[n].Fades() {
				continue
			}
			if p := archeutil.LookUp(d.sim.world, r.entity, c.inside().id); p != nil {
				c.keep(uint32(i), p)
				r.kept |= 1 << n
				d.fades[n].Grow(len(d.sim.rows))
			}
		}
	}
}

// correct makes entities begin where they were drawn in the last frame.
func (d *drawing) correct() {
	if !d.any {
		return
	}
	for i := range d.sim.rows {
		r := &d.sim.rows[i]
		if r.entity.IsZero() || r.parked || !r.drawn {
			continue
		}
		for n, c := range d.sim.columns {
			h := c.inside()
			f := &d.fades[n]
			if r.kept>>n&1 == 0 || archeutil.LookUp(d.sim.world, r.entity, h.id) == nil {
				continue
			}
			d.value(c, uint32(i), r.last, c.second())
			errors := f.Row()
			h.kernel.Difference(errors, c.kept(uint32(i)), c.second())
			if h.kernel.Far(errors) {
				d.sim.stats.Snaps++
				f.Stop(uint32(i))
			} else if f.Correct(uint32(i), errors) {
				d.sim.stats.Corrections++
			}
		}
	}
}

// value stores what was simulated for a moment.
func (d *drawing) value(c column, row uint32, at replication.Time, dst unsafe.Pointer) {
	s, h := d.sim, c.inside()
	newest := s.newest
	c.set(dst, c.at(newest, row))
	if !at.Tick.Before(newest) {
		return
	}
	first := s.rows[row].first
	from := at.Tick
	if oldest := s.oldest(); from.Before(oldest) {
		from, at.Fraction = oldest, 0
	}
	if from.Before(first) { // it has no values before
		from = first
		c.set(dst, c.at(from, row))
		return
	}
	to := c.prepared()
	c.set(to, c.at(from+1, row))
	h.kernel.Prepare(c.at(from, row), to)
	if h.kernel.Snaps(c.at(from, row), to, 1) {
		at.Fraction = 0
	}
	h.kernel.Mix(dst, c.at(from, row), to, at.Fraction)
}

// draw writes what is to be drawn. Corrections fade for a time of dt, unless they have just begun.
func (d *drawing) draw(at replication.Time, dt time.Duration) {
	s := d.sim
	if s.slides.sliding() { // proceed has kept what was drawn
		s.slides.slide(dt.Seconds()/s.run.Seconds, at)
		d.correct()
	}
	for i := range s.rows {
		r := &s.rows[i]
		if !r.drawn { // another entity may have had the row
			for n := range d.fades {
				d.fades[n].Stop(uint32(i))
			}
		}
		if r.drawn = !r.entity.IsZero() && !r.parked; r.slide.lag > 0 {
			r.last = at.Add(-r.slide.lag)
		} else {
			r.last = at
		}
	}
	for n, c := range s.columns {
		f := &d.fades[n]
		h := c.inside()
		if !h.kernel.Moves() && !f.Any {
			s.each(c, func(count int, markers, values unsafe.Pointer) { c.restore(s.newest, count, markers, values) })
			continue
		}
		s.each(c, func(count int, markers, values unsafe.Pointer) {
			for i, m := range unsafe.Slice((*Predicted)(markers), count) {
				p := unsafe.Add(values, uintptr(i)*h.comp.Size)
				d.value(c, m.row, s.rows[m.row].last, p)
				if f.Active(m.row) {
					f.Fade(m.row, dt)
					h.kernel.Displace(p, f.Errors(m.row))
				}
			}
		})
	}
	d.any = true
	s.slides.arrive()
}
