package game

import "math"

// vec is a point or a direction in the plane.
type vec struct{ X, Y float64 }

func (a vec) add(b vec) vec              { return vec{a.X + b.X, a.Y + b.Y} }
func (a vec) sub(b vec) vec              { return vec{a.X - b.X, a.Y - b.Y} }
func (a vec) times(f float64) vec        { return vec{a.X * f, a.Y * f} }
func (a vec) dot(b vec) float64          { return a.X*b.X + a.Y*b.Y }
func (a vec) square() float64            { return a.dot(a) }
func (a vec) length() float64            { return math.Sqrt(a.square()) }
func (a vec) angle() float64             { return math.Atan2(a.Y, a.X) }
func direction(angle float64) vec        { return vec{math.Cos(angle), math.Sin(angle)} }
func (p *Position) vec() vec             { return vec{float64(p.X), float64(p.Y)} }
func (p *Position) set(v vec)            { p.X, p.Y = float32(v.X), float32(v.Y) }
func (v *Velocity) vec() vec             { return vec(*v) }
func (v *Velocity) set(to vec)           { *v = Velocity(to) }
func (h *Heading) set(angle float64)     { h.Angle = float32(wrapAngle(angle)) }
func (h *Heading) angle() float64        { return float64(h.Angle) }
func clamp(x, low, high float64) float64 { return max(low, min(x, high)) }

// wrapAngle brings an angle into [-π, π].
func wrapAngle(angle float64) float64 { return math.Remainder(angle, 2*math.Pi) }

// distanceToSegment returns the distance of the point p from the segment from a to b.
func distanceToSegment(p, a, b vec) float64 {
	way := b.sub(a)
	t := 0.0
	if s := way.square(); s > 0 {
		t = clamp(p.sub(a).dot(way)/s, 0, 1)
	}
	return p.sub(a.add(way.times(t))).length()
}

// intercept returns where to aim to hit a target at the offset to that moves at velocity, with a
// bullet of the given speed: the first point where the two can meet, or the target itself if the
// bullet can never reach it.
func intercept(to, velocity vec, speed float64) vec {
	// |to + velocity·t| = speed·t, a quadratic equation in t.
	a := velocity.square() - speed*speed
	b := to.dot(velocity)
	c := to.square()
	root := b*b - a*c
	if a >= 0 || root < 0 {
		return to
	}
	t := (-b - math.Sqrt(root)) / a
	return to.add(velocity.times(t))
}
