package blend

import (
	"fmt"
	"unsafe"
)

// A Curve bends the way of a component's linear fields, so that they set out and arrive with the velocities that
// another component has: a cubic Hermite curve.
type Curve struct{ singles, doubles []bend }

// A bend is a field of the one component and that of the other which has its velocity, by their offsets.
type bend struct{ position, velocity uintptr }

// NewCurve returns the curve of the linear fields of one component by those of another, in their order. It fails if
// these are not as many fields of the same types.
func NewCurve(position, velocity *Kernel) (*Curve, error) {
	singles, doubles := len(position.singles), len(position.doubles)
	if singles != len(velocity.singles) || doubles != len(velocity.doubles) || singles+doubles == 0 {
		return nil, fmt.Errorf("%s has %d float32 and %d float64 fields that move linearly, and %s has %d and %d: "+
			"each field needs one with its velocity", position.comp.Name, singles, doubles,
			velocity.comp.Name, len(velocity.singles), len(velocity.doubles))
	}
	var c Curve
	for i, o := range position.singles {
		c.singles = append(c.singles, bend{o, velocity.singles[i]})
	}
	for i, o := range position.doubles {
		c.doubles = append(c.doubles, bend{o, velocity.doubles[i]})
	}
	return &c, nil
}

// Prepare turns the velocities at both ends of a way, in place, into what [Curve.Bend] needs. way is what
// [Kernel.Prepare] has made of the second position. scale times a velocity is the distance that it covers in the time
// of the way. A velocity that is infinite or not a number bends nothing.
func (c *Curve) Prepare(way, first, second unsafe.Pointer, scale float64) {
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
