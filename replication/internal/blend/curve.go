package blend

import (
	"math"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Curve bends the way of a component's linear fields, so that they set out and arrive with the velocities that
// another component has: a cubic Hermite curve.
type Curve struct {
	Number           int               // of the component with the velocities
	Velocity         *schema.Component // the same
	perTick          float64
	singles, doubles []bend
}

// A bend is a field of the one component and that of the other which has its velocity, by their offsets.
type bend struct{ position, velocity uintptr }

// NewCurve returns the curve of a component's kernel, or nil if it moves straight.
func NewCurve(s *schema.Schema, position *Kernel) *Curve {
	shown := &position.comp.Shown
	if shown.PerTick == 0 {
		return nil
	}
	of := &s.Components[shown.Velocity]
	velocity := New(of)
	c := &Curve{Number: shown.Velocity, Velocity: of, perTick: shown.PerTick}
	for i, o := range position.singles {
		c.singles = append(c.singles, bend{o, velocity.singles[i]})
	}
	for i, o := range position.doubles {
		c.doubles = append(c.doubles, bend{o, velocity.doubles[i]})
	}
	return c
}

// Prepare turns the velocities at both ends of a way, in place, into what [Curve.Bend] needs. way is what
// [Kernel.Prepare] has made of the second position, and ticks is how long it takes. A velocity that is infinite or not
// a number bends nothing.
func (c *Curve) Prepare(way, first, second unsafe.Pointer, ticks delta.Tick) {
	scale := c.perTick * float64(ticks)
	for _, b := range c.singles {
		d := float64(*(*float32)(unsafe.Add(way, b.position)))
		for _, v := range [2]unsafe.Pointer{first, second} {
			p := (*float32)(unsafe.Add(v, b.velocity))
			*p = finite(float32(float64(float64(*p)*scale) - d))
		}
	}
	for _, b := range c.doubles {
		d := *(*float64)(unsafe.Add(way, b.position))
		for _, v := range [2]unsafe.Pointer{first, second} {
			p := (*float64)(unsafe.Add(v, b.velocity))
			*p = finite(float64(*p*scale) - d)
		}
	}
}

// Aside returns how far the curve of the field at an offset of the position leaves the range between its ends, at most.
// The velocities are prepared.
func (c *Curve) Aside(offset uintptr, first, second unsafe.Pointer) float64 {
	const most = 4. / 27 // of the shares that Bend gives the velocities
	for _, b := range c.singles {
		if b.position == offset {
			return most * (math.Abs(float64(*(*float32)(unsafe.Add(first, b.velocity)))) +
				math.Abs(float64(*(*float32)(unsafe.Add(second, b.velocity)))))
		}
	}
	for _, b := range c.doubles {
		if b.position == offset {
			return most * (math.Abs(*(*float64)(unsafe.Add(first, b.velocity))) +
				math.Abs(*(*float64)(unsafe.Add(second, b.velocity))))
		}
	}
	return 0
}

// Bend moves a value from the straight way, where [Kernel.Mix] has put it for the same fraction, to the curve.
func (c *Curve) Bend(dst, first, second unsafe.Pointer, f float32) {
	x := float64(f)
	// The Hermite curve is the straight way and these shares of what the velocities differ from the mean one.
	start, end := float64(x*float64(x-1))*(x-1), float64(x*x)*(x-1)
	for _, b := range c.singles {
		p := (*float32)(unsafe.Add(dst, b.position))
		*p += float32(float64(start*float64(*(*float32)(unsafe.Add(first, b.velocity)))) +
			float64(end*float64(*(*float32)(unsafe.Add(second, b.velocity)))))
	}
	for _, b := range c.doubles {
		p := (*float64)(unsafe.Add(dst, b.position))
		*p += float64(start**(*float64)(unsafe.Add(first, b.velocity))) +
			float64(end**(*float64)(unsafe.Add(second, b.velocity)))
	}
}
