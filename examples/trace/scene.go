package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
)

// scene holds the flags that -render and -explain have in common: an entity, and a part of the time.
type scene struct {
	entity       entityName
	entityChosen bool
	fps          float64 // frames per second
	from         time.Duration
	fromChosen   bool
	span         time.Duration
	spanChosen   bool
}

// The spans without -span.
const (
	renderSpan  = 2 * time.Second
	explainSpan = time.Second
)

// flags adds the flags of -render and -explain.
func (s *scene) flags(set *flag.FlagSet) {
	set.Func("entity", "`entity` that -render draws or -explain prints: its number in the trace; of a recording "+
		"SLOT.GENERATION, such as 17.1, for -explain also SLOT (default: the one that goes the longest way, or all)",
		func(text string) (err error) {
			s.entity, err = parseEntity(text)
			s.entityChosen = true
			return err
		})
	set.Float64Var(&s.fps, "fps", 144, "`frames` per second of -render")
	set.Func("from", "`time` at which the picture of -render or the packets of -explain begin: 3:12.016, 192.016 or "+
		"3m12.016s (default: where the entity goes the longest way, or 0)",
		func(text string) (err error) {
			s.from, err = parseTime(text)
			s.fromChosen = true
			return err
		})
	s.span = renderSpan
	set.Func("span", "`time` that the picture of -render or the packets of -explain take, written as for -from "+
		"(default: 2s for -render, 1s for -explain)",
		func(text string) (err error) {
			s.span, err = parseTime(text)
			s.spanChosen = true
			return err
		})
}

// maxSeconds bounds times in flags, so that they fit into a time.Duration.
const maxSeconds = 1e9

// parseTime reads a time: m:ss.mmm, as this program prints it, seconds, or a time.Duration.
func parseTime(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	head, seconds, clock := strings.Cut(text, ":")
	minutes := uint64(0)
	var err error
	if clock {
		minutes, err = strconv.ParseUint(head, 10, 24)
	} else {
		seconds = text
	}
	s, err2 := strconv.ParseFloat(seconds, 64)
	if err != nil || err2 != nil || !(math.Abs(s) <= maxSeconds) || clock && !(s >= 0 && s < 60) {
		return 0, errors.New("a time is 3:12.016, 192.016 or 3m12.016s")
	}
	return time.Duration(minutes)*time.Minute + time.Duration(math.Round(s*1e6))*time.Microsecond, nil
}

// An entityName is what -entity names.
type entityName struct {
	number     uint64 // or slot
	generation uint16
	exact      bool // with its generation
}

// parseEntity reads a number, or SLOT.GENERATION.
func parseEntity(text string) (name entityName, err error) {
	head, tail, exact := strings.Cut(text, ".")
	generation := uint64(0)
	if exact {
		name.number, err = strconv.ParseUint(head, 10, 32)
	} else {
		name.number, err = strconv.ParseUint(head, 10, 64)
	}
	if err == nil && exact {
		generation, err = strconv.ParseUint(tail, 10, 16)
	}
	if err != nil {
		return entityName{}, errors.New("an entity is a number such as 17, or SLOT.GENERATION such as 17.1")
	}
	name.generation, name.exact = uint16(generation), exact
	return name, nil
}

func (n entityName) String() string {
	if n.exact {
		return n.id().String()
	}
	return strconv.FormatUint(n.number, 10)
}

// id returns the network ID of an entity that is named by it.
func (n entityName) id() replication.NetID {
	return replication.NetID{Slot: uint32(n.number), Generation: n.generation}
}

// is reports whether the name is that of an entity, perhaps without its generation.
func (n entityName) is(id replication.NetID) bool {
	if n.exact {
		return id == n.id()
	}
	return uint64(id.Slot) == n.number
}

// numberIn returns the number that the entity has in a trace.
func (n entityName) numberIn(r *reader) (uint64, error) {
	switch {
	case !n.exact:
		return n.number, nil
	case r.recorded == nil:
		return 0, fmt.Errorf("-entity is %v, but the entities of %s have numbers without generations", n, r.file)
	}
	return numberOf(n.id()), nil
}

// nameOf returns how an entity of a trace is shown to people.
func nameOf(r *reader, number uint64) string {
	if r.recorded == nil || number == resourceEntity {
		return strconv.FormatUint(number, 10)
	}
	return replication.NetID{Slot: uint32(number >> 16), Generation: uint16(number)}.String()
}
