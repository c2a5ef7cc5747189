package main

import (
	"math"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication"
)

// oracle is a plain log of the trace: every version of every entity, in codes, as far back as a
// client may still show it. It shares nothing with the server but the codes of a value, which it
// gets from [replication.Schema.Codes] and CodesAfter.
//
// Times are ticks since the first one of the trace.
type oracle struct {
	schema  *replication.Schema
	peers   int
	lives   map[uint64]*life            // live ones, by number in the trace
	byNetID map[replication.NetID]*life // those that a client may show
	born    []*life                     // since the latest capture
}

// life is one generation of an entity of the trace: from a row that has components to one that has
// none.
type life struct {
	number   uint64
	born     int64
	died     int64 // notYet while it lives
	versions []version
	shown    []shown // by peer
}

const notYet = math.MaxInt64

// version is the state of an entity from a time on.
type version struct {
	since int64
	codes [][]uint64 // by component; nil where the entity has none

	targets []uint64 // of the row
}

// equals reports whether two versions have the same components and codes. References are no part of them.
func (v *version) equals(w *version) bool {
	return v == w || slices.EqualFunc(v.codes, w.codes, func(a, b []uint64) bool {
		return (a == nil) == (b == nil) && slices.Equal(a, b)
	})
}

// shown is what a mirror showed of a life in its latest check.
type shown struct {
	at    int64  // the tick of the state; -1 if never
	round uint64 // number of the check
}

func newOracle(schema *replication.Schema, peers int) *oracle {
	return &oracle{
		schema:  schema,
		peers:   peers,
		lives:   map[uint64]*life{},
		byNetID: map[replication.NetID]*life{},
	}
}

// note records a row at its time.
func (o *oracle) note(r *reader, now int64) {
	l := o.lives[r.entity]
	if !slices.Contains(r.has, true) {
		if l != nil {
			l.died = now
			delete(o.lives, r.entity)
		}
		return
	}
	if l == nil {
		l = &life{number: r.entity, born: now, died: notYet, shown: make([]shown, o.peers)}
		for i := range l.shown {
			l.shown[i].at = -1
		}
		o.lives[r.entity] = l
		o.born = append(o.born, l)
	}
	v := version{since: now, codes: make([][]uint64, len(r.has))}
	before := l.at(now - 1) // what the server recorded last
	for i, has := range r.has {
		switch value := r.values[i].Interface(); {
		case !has:
		case before == nil || before.codes[i] == nil:
			v.codes[i] = o.schema.Codes(value, []uint64{})
		default:
			v.codes[i] = o.schema.CodesAfter(value, before.codes[i], []uint64{})
		}
	}
	v.targets = slices.Clone(r.targets)
	l.versions = append(l.versions, v)
}

// captured gets the NetIDs of the entities born since the last call.
func (o *oracle) captured(netID func(number uint64) (replication.NetID, bool)) {
	for _, l := range o.born {
		if l.died != notYet {
			continue // it came and went between two captures
		}
		if id, ok := netID(l.number); ok {
			o.byNetID[id] = l
		}
	}
	o.born = o.born[:0]
}

// at returns the state at a time: the latest version up to it. Of two rows at the same tick that is
// the later one.
func (l *life) at(time int64) *version {
	for i := len(l.versions) - 1; i >= 0; i-- {
		if l.versions[i].since <= time {
			return &l.versions[i]
		}
	}
	return nil
}

// newest returns the latest state.
func (l *life) newest() *version { return &l.versions[len(l.versions)-1] }

// keptVersions is the number of versions from which on pruning pays.
const keptVersions = 64

// prune drops the versions older than any that a client shows. Checks ensure that a client never
// shows an older one again.
func (l *life) prune() {
	if len(l.versions) < keptVersions {
		return
	}
	oldest := int64(math.MaxInt64)
	for _, s := range l.shown {
		oldest = min(oldest, s.at)
	}
	n := 0
	for n+1 < len(l.versions) && l.versions[n+1].since <= oldest {
		n++
	}
	l.versions = slices.Delete(l.versions, 0, n)
}

// afterlife is the number of ticks after its end for which a client may still begin to show an
// entity.
const afterlife = 4096

// forget drops the lives that ended long ago and that no client showed in its latest check; rounds
// has the numbers of these checks.
func (o *oracle) forget(now int64, rounds []uint64) {
	for id, l := range o.byNetID {
		if l.died == notYet || now-l.died < afterlife {
			continue
		}
		held := false
		for i, s := range l.shown {
			held = held || s.round == rounds[i]
		}
		if !held {
			delete(o.byNetID, id)
		}
	}
}
