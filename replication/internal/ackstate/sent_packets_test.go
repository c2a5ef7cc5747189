package ackstate

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// A plainPacket is the record of a packet in the naive log, which keeps everything forever.
type plainPacket struct {
	tick    delta.Tick
	status  SentStatus
	records []baseline.Record
	copied  bool // of a shared packet
}

// TestSentLogRemembers compares a log with a naive one that forgets nothing, through bursts and
// pauses, and across the wrap of all numbers: every packet in flight is there, and is as it was
// sent.
func TestSentLogRemembers(t *testing.T) {
	seed := replicationtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 6))
	first, now := ^uint32(0)-3000, ^delta.Tick(0)-1000
	l := NewSentLog(first)
	l.written = ^uint32(0) - 20_000
	var twin []plainPacket
	var lists []*baseline.SharedRecords
	forgotten, grown, shrunk, copies := 0, 0, 0, 0
	for tick := range 1800 {
		now++
		packets, delay := rng.IntN(4), 5
		switch {
		case tick%600 < 30:
			packets = 12 // a burst
		case tick%600 > 450:
			delay = 40 // slow
		}
		size := len(l.Records)
		var shared *baseline.SharedRecords // of some packets in a row
		for range packets {
			if l.Full() {
				break
			}
			p, sent := l.Begin(now), plainPacket{tick: now, status: SentInFlight}
			if rng.IntN(4) == 0 {
				shared = nil
			}
			if shared != nil || rng.IntN(6) == 0 {
				if shared == nil {
					shared = unusedRecords(&lists)
				}
				n := len(shared.List)
				for block := range rng.IntN(20) {
					r := baseline.Record{Mask: rng.Uint64(), Block: uint32(block)}
					shared.List = append(shared.List, baseline.NewRecord(block, r.Mask, r.Kind))
					sent.records = append(sent.records, r)
				}
				l.Share(p, shared, n, len(shared.List))
				require.True(t, shared.InUse())
				require.Equal(t, first+uint32(len(twin)), l.Commit(1))
				sent.copied = true
				twin = append(twin, sent)
				copies++
				continue
			}
			for block := range 1 + rng.IntN(20) {
				r := baseline.Record{Mask: rng.Uint64() | 1, Block: uint32(block)<<rng.IntN(21) | uint32(block), Kind: baseline.RecordKind(rng.IntN(2))}
				low := r.Mask & rng.Uint64()
				l.Add(p, int(r.Block), low, r.Kind) // in two steps
				l.Add(p, int(r.Block), r.Mask&^low, r.Kind)
				if last := len(sent.records) - 1; last >= 0 && sent.records[last].Block == r.Block && sent.records[last].Kind == r.Kind {
					sent.records[last].Mask |= r.Mask
				} else {
					sent.records = append(sent.records, r)
				}
			}
			require.Equal(t, first+uint32(len(twin)), l.Commit(1))
			twin = append(twin, sent)
		}
		for i := max(0, len(twin)-600); i < len(twin); i++ {
			sent := &twin[i]
			if p := l.Find(first + uint32(i)); sent.status == SentInFlight {
				require.NotNil(t, p, "packet %d is in flight", i)
				if int(now-sent.tick) >= delay && rng.IntN(3) > 0 {
					sent.status = []SentStatus{SentLost, SentAcked}[rng.IntN(2)]
					p.Status = sent.status
				}
			}
			p := l.Find(first + uint32(i))
			if p == nil {
				at := l.At(first + uint32(i))
				require.False(t, sent.copied && at.shared != nil && at.Tick == sent.tick, "the records of copy %d are at hand", i)
				forgotten++
				continue
			}
			require.Equal(t, sent.tick, p.Tick)
			require.Equal(t, sent.status, p.Status)
			require.EqualValues(t, len(sent.records), p.Count)
			for k, r := range sent.records {
				if got := l.Record(p, uint32(k)); got != r { // this runs millions of times
					require.Equal(t, r, got, "record %d of packet %d", k, i)
				}
			}
			if at, ok := l.sentAt(first+uint32(i), now); now-sent.tick < markedTicks-markTicks {
				require.True(t, ok)
				require.LessOrEqual(t, sent.tick-at, delta.Tick(markTicks-1))
			}
		}
		l.trim(l.Next)
		switch {
		case len(l.Records) > size:
			grown++
		case len(l.Records) < size:
			shrunk++
		}
	}
	for _, sequence := range []uint32{l.Next, l.Next + 1, first - 1, l.Next + 1<<31 - 1} {
		require.Nil(t, l.Find(sequence))
	}
	_, ok := l.sentAt(l.Next, now)
	require.False(t, ok)
	t.Logf("%d packets, %d of them copies with %d lists of records; grown %d times and shrunk %d times",
		len(twin), copies, len(lists), grown, shrunk)
	require.Greater(t, copies, 500)
	require.Less(t, len(lists), copies/3, "lists are used again")
	l.clear()
	for _, list := range lists {
		require.False(t, list.InUse())
	}
	require.NotZero(t, forgotten)
	require.Greater(t, grown, 5)
	require.GreaterOrEqual(t, shrunk, 2)
	require.Less(t, len(l.Records), 2*40*4*20)
}

// unusedRecords returns one of some lists of records that no log uses, without records, or a new one.
func unusedRecords(lists *[]*baseline.SharedRecords) *baseline.SharedRecords {
	for _, list := range *lists {
		if !list.InUse() {
			clear(list.List) // so that whoever reads it still, will be found
			list.List = list.List[:0]
			return list
		}
	}
	*lists = append(*lists, new(baseline.SharedRecords))
	return (*lists)[len(*lists)-1]
}

// TestSentLogKeepsItsSize: under a steady load nothing is allocated.
func TestSentLogKeepsItsSize(t *testing.T) {
	replicationtest.SkipAllocations(t)
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 7))
	l := NewSentLog(0)
	tick := delta.Tick(0)
	play := func() {
		tick++
		for range 4 + rng.IntN(3) {
			p := l.Begin(tick)
			for block := range 10 + rng.IntN(5) {
				l.Add(p, block, 1, baseline.RecordState)
			}
			l.Commit(1)
		}
		for q := l.Oldest; q != l.Next && tick-l.At(q).Tick > 7; q++ {
			l.At(q).Status = SentAcked
		}
		l.trim(l.Next)
	}
	for range 4 * ResizeTicks {
		play()
	}
	require.Zero(t, testing.AllocsPerRun(10*ResizeTicks, play))
}
