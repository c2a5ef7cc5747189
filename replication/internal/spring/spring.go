// Package spring lets corrections fade.
package spring

import (
	"math"
	"time"
)

// Rows are what is left of the corrections of some rows of numbers: what is shown less what is right. They fade as
// critically damped springs do: a correction begins without a jerk, never overshoots, and takes a further one on with
// the speed that it has.
type Rows struct {
	Any     bool // some row is active
	numbers int  // of a row
	omega   float64
	active  []bool
	errors  []float64
	added   []float64 // what the errors have grown by, which fades from the next time on
	speeds  []float64 // by which the errors change, a second
	row     []float64 // scratch memory
}

// New returns rows of so many numbers. Half of a correction is left after the given time; 0 means that nothing fades,
// and everything is right at once.
func New(numbers int, half time.Duration) Rows {
	r := Rows{numbers: numbers, row: make([]float64, numbers)}
	if half > 0 {
		r.omega = halfLife / half.Seconds()
	}
	return r
}

// halfLife is how many time constants a critically damped spring takes to go half of its way: (1+x) exp(-x) = 1/2.
const halfLife = 1.678347

// leastError is an error that nobody sees.
const leastError = 1e-6

// Fades reports whether there is anything that fades.
func (r *Rows) Fades() bool { return r.numbers > 0 && r.omega > 0 }

// Grow makes room for rows.
func (r *Rows) Grow(rows int) {
	if more := rows - len(r.active); more > 0 {
		r.active = append(r.active, make([]bool, more)...)
		r.errors = append(r.errors, make([]float64, more*r.numbers)...)
		r.added = append(r.added, make([]float64, more*r.numbers)...)
		r.speeds = append(r.speeds, make([]float64, more*r.numbers)...)
	}
}

// Active reports whether a row has a correction.
func (r *Rows) Active(i uint32) bool { return int(i) < len(r.active) && r.active[i] }

// Row returns scratch memory for the numbers of a row.
func (r *Rows) Row() []float64 { return r.row }

// Errors returns what is left of the correction of a row, for which there is room.
func (r *Rows) Errors(i uint32) []float64 { return r.of(r.errors, i) }

func (r *Rows) of(all []float64, i uint32) []float64 {
	return all[int(i)*r.numbers : (int(i)+1)*r.numbers]
}

// Correct makes the errors of a row those given when Fade is called next, and reports whether they change. The row has
// room.
func (r *Rows) Correct(i uint32, errors []float64) bool {
	old, added, differ := r.Errors(i), r.of(r.added, i), false
	for k, e := range errors {
		added[k] = e - old[k]
		differ = differ || math.Abs(added[k]) > leastError
	}
	if !differ {
		clear(added)
		return false
	}
	r.active[i], r.Any = true, true
	return true
}

// Stop ends the correction of a row.
func (r *Rows) Stop(i uint32) {
	if r.Active(i) {
		r.active[i] = false
		clear(r.Errors(i))
		clear(r.of(r.added, i))
		clear(r.of(r.speeds, i))
	}
}

// StopAll ends all corrections.
func (r *Rows) StopAll() {
	for i := range r.active {
		r.Stop(uint32(i))
	}
	r.Any = false
}

// Fade lets the correction of an active row fade for some time. What Correct has added begins to fade afterwards.
func (r *Rows) Fade(i uint32, dt time.Duration) {
	errors, added, speeds := r.Errors(i), r.of(r.added, i), r.of(r.speeds, i)
	t := dt.Seconds()
	e := math.Exp(-r.omega * t)
	visible := false
	for k, x := range errors {
		v := speeds[k]
		push := v + r.omega*x
		if push*x < 0 { // it would overshoot
			v, push = -r.omega*x, 0
		}
		errors[k] = (x+push*t)*e + added[k]
		speeds[k] = (v - r.omega*push*t) * e
		added[k] = 0
		visible = visible || math.Abs(errors[k]) > leastError
	}
	if !visible {
		r.Stop(i)
	}
}

// Copy returns a copy of an active row, as row 0.
func (r *Rows) Copy(i uint32) Rows {
	c := Rows{Any: true, numbers: r.numbers, omega: r.omega, row: make([]float64, r.numbers)}
	c.Grow(1)
	c.active[0] = true
	copy(c.errors, r.Errors(i))
	copy(c.added, r.of(r.added, i))
	copy(c.speeds, r.of(r.speeds, i))
	return c
}
