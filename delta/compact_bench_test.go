package delta

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// BenchmarkCompactCrowd compares Compact with Packed on the same rows, turn by turn, and
// measures the cost of keeping a model for each packet.
func BenchmarkCompactCrowd(b *testing.B) {
	x := newCrowd(b)
	packed, sender, receiver := NewPacked(x.layout), NewCompact(x.layout), NewCompact(x.layout)
	ours, theirs := sender.newModel(), receiver.newModel()
	kept := make([]Model, 64)
	buf, dst := make([]byte, 1<<17), make([]uint32, 16)
	rows := crowdPacket(x)
	var total [4]time.Duration
	var bytes [2]int
	n := 0
	for b.Loop() {
		start := time.Now()
		w := bitbuf.NewWriter(buf)
		packed.Costs = packed.Costs[:0]
		for i := range rows {
			r := &rows[i]
			packed.EncodeRow(&w, r.component, r.cur, r.past.Base, r.past.Base2, r.past.Ratio)
		}
		bytes[0] = len(w.Bytes())
		times := [5]time.Time{start, time.Now()}

		sender.Costs = sender.Costs[:0]
		sender.Begin(ours)
		e := NewRangeEncoder(buf)
		for i := range rows {
			if rows[i].begins {
				sender.Entity(true)
			}
			sender.EncodeRow(&e, rows[i].component, rows[i].cur, &rows[i].past)
		}
		data, err := e.Finish()
		require.NoError(b, err)
		bytes[1] = len(data)
		times[2] = time.Now()

		receiver.Begin(theirs)
		d := NewRangeDecoder(data)
		for i := range rows {
			if rows[i].begins {
				receiver.Entity(true)
			}
			receiver.decodeRow(&d, rows[i].component, dst[:len(rows[i].cur)], &rows[i].past)
		}
		require.NoError(b, d.Err())
		times[3] = time.Now()

		for i := range kept {
			kept[(i+n)%len(kept)].CopyFrom(ours)
		}
		n++
		times[4] = time.Now()
		for i := range total {
			total[i] += times[i+1].Sub(times[i])
		}
	}
	perRow := float64(b.N) * float64(len(rows))
	b.ReportMetric(float64(total[0])/perRow, "packed-ns/row")
	b.ReportMetric(float64(total[1])/perRow, "encode-ns/row")
	b.ReportMetric(float64(total[2])/perRow, "decode-ns/row")
	b.ReportMetric(float64(total[1])/float64(total[0]), "times-packed")
	b.ReportMetric(float64(total[3])/float64(b.N)/float64(len(kept)), "ns/copy")
	b.ReportMetric(float64(bytes[1])/float64(bytes[0]), "bytes-of-packed")
	b.ReportMetric(0, "ns/op")
}
