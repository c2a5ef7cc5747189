package main

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// What moves less than a step a tick does not move evenly: it stands still for some ticks and then goes
// a step. Package interpolation names such a component while a game runs; here it is measured for each field,
// with the step that would help.

// slowness is how often a field is too slow for its step, in ticks.
type slowness struct {
	moving float64 // in which it moves
	slow   float64 // of them, those in which its component goes less than a step a tick
	steps  float64 // how far it goes in the slow ones
}

const (
	slowSpeed  = 0.8 // steps a tick; above that, hardly a tick is without a step
	slowSteps  = 2   // of a change: more than one if the recording has a row in every other tick
	slowShare  = 0.1 // of a field's motion: less is not worth a line
	evenSteps  = 4   // steps a tick, at which the speed seems to vary by a quarter at most
	longestGap = 1.0 // seconds between two steps; if it is longer, the field has rested
)

// share returns the share of a field's motion that is too slow.
func (s *slowness) share() float64 { return quotient(s.slow, s.moving) }

// even returns the item of a tag, as precision returns it, with which the slow motion takes enough steps.
func (s *slowness) even(key, value string) string {
	factor := evenSteps * s.slow / s.steps
	if key == "bits" {
		bits, _ := strconv.Atoi(value)
		return "bits=" + strconv.Itoa(bits+int(math.Ceil(math.Log2(factor))))
	}
	step, _ := strconv.ParseFloat(value, 64)
	step /= factor
	unit := math.Pow(10, math.Floor(math.Log10(step)))
	return key + "=" + strconv.FormatFloat(math.Floor(step/unit+1e-9)*unit, 'g', 3, 64)
}

// moves reports whether interpolation shows values of the field between its steps.
func (f *field) moves() bool {
	_, _, scaled := f.precision()
	items := strings.Split(f.tag, ",")
	return scaled && f.float() && !slices.ContainsFunc(items, func(key string) bool {
		return key == "jump" || key == "counter" || key == "hold"
	})
}

// A motion is what is known of a component of an entity.
type motion struct {
	changed  uint64 // the tick of the last change
	any      bool
	up, down uint64 // codes that grew and shrank then
}

// measureSlowness reads a trace once, and returns the slowness of the named fields.
func measureSlowness(cfg config, src io.Reader, moving map[string]bool) (map[string]*slowness, error) {
	fields, motions := map[string]*slowness{}, map[part]*motion{}
	for name := range moving {
		fields[name] = &slowness{}
	}
	err := eachChange(cfg, src, nil, func(c change) {
		most, up, down := uint64(0), uint64(0), uint64(0)
		far := map[string]uint64{}
		for k, code := range c.codes {
			if before := c.before[k]; code != before && moving[c.owners[k]] {
				d := max(before, code) - min(before, code)
				most, far[c.owners[k]] = max(most, d), max(far[c.owners[k]], d)
				if code > before {
					up |= 1 << k
				} else {
					down |= 1 << k
				}
			}
		}
		if most == 0 {
			return
		}
		m := motions[c.part]
		if m == nil {
			m = &motion{}
			motions[c.part] = m
		}
		gap, known := float64(c.tick-m.changed), m.any
		reversed := m.up&down|m.down&up != 0
		*m = motion{c.tick, true, up, down}
		if !known || gap > longestGap*c.rate || reversed {
			return
		}
		for name, d := range far {
			s := fields[name]
			s.moving += gap
			if most <= slowSteps && float64(most) < slowSpeed*gap {
				s.slow, s.steps = s.slow+gap, s.steps+float64(d)
			}
		}
	})
	return fields, err
}
