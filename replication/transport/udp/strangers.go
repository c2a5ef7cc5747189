package udp

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// A bucket has the answers that may be sent now; it fills by a rate per second, up to what a second fills.
type bucket struct {
	tokens, rate float64
	filled       time.Duration
}

func (b *bucket) fill(now time.Duration) {
	b.tokens = min(b.rate, b.tokens+(now-b.filled).Seconds()*b.rate)
	b.filled = now
}

// strangers bound the answers to addresses that have proven nothing: all of them, and those with one IP address, or
// with some others that share its bucket, to an eighth. So a flood from one address leaves answers for others.
type strangers struct {
	all  bucket
	some [64]bucket
	seed maphash.Seed
}

func newStrangers(perSecond int, now time.Duration) *strangers {
	s := &strangers{seed: maphash.MakeSeed()}
	full := func(rate float64) bucket { return bucket{tokens: rate, rate: rate, filled: now} }
	s.all = full(float64(perSecond))
	for i := range s.some {
		s.some[i] = full(max(1, float64(perSecond)/8))
	}
	return s
}

func (s *strangers) allow(from netip.AddrPort, now time.Duration) bool {
	some := &s.some[maphash.Comparable(s.seed, link.Network(from))%uint64(len(s.some))]
	some.fill(now)
	s.all.fill(now)
	if some.tokens < 1 || s.all.tokens < 1 {
		return false
	}
	some.tokens--
	s.all.tokens--
	return true
}
