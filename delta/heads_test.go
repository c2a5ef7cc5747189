package delta

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHeads checks that heads are read as they were written, between rows or without any, and never take more bytes than
// promised.
func TestHeads(t *testing.T) {
	rng := randomOf(t)
	x := newCompactTest(t)
	for range 300 {
		seed := rng.Uint64()
		e := NewRangeEncoder(x.buf)
		x.sender.Begin(x.ours)
		play(seed, func(i int, v uint64, n uint) {
			switch i % 4 {
			case 0:
				x.sender.PutHead(&e, i%HeadDecisions, v&1 != 0)
			case 1:
				x.sender.PutHeadLength(&e, i%100, 1+i%20, v, n)
			case 2:
				e.PutBits(v, n)
			case 3:
				e.PutExpGolomb(v&0xffffffff, n%32)
			}
		})
		most, bits := e.Len(), float64(e.spent())/CostUnit
		data, err := e.Finish()
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), most)
		require.LessOrEqual(t, 8*float64(len(data)), bits+9)

		d := NewRangeDecoder(data)
		x.receiver.Begin(x.theirs)
		play(seed, func(i int, v uint64, n uint) {
			switch i % 4 {
			case 0:
				require.Equal(t, v&1 != 0, x.receiver.GetHead(&d, i%HeadDecisions))
			case 1:
				require.Equal(t, v, x.receiver.GetHeadLength(&d, i%100, 1+i%20, n))
			case 2:
				require.Equal(t, v, d.GetBits(n))
			case 3:
				require.Equal(t, v&0xffffffff, d.GetExpGolomb(n%32))
			}
		})
		require.NoError(t, d.Finish())
		require.True(t, assert.ObjectsAreEqual(x.ours, x.theirs))
	}
}

// play calls do with random numbers v < 2^n.
func play(seed uint64, do func(i int, v uint64, n uint)) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range rng.IntN(100) {
		n := rng.UintN(65)
		do(rng.IntN(1<<16), rng.Uint64()&lowBits(n)>>rng.UintN(65), n)
	}
}

func TestBytesThatAreNotRead(t *testing.T) {
	e := NewRangeEncoder(make([]byte, 64))
	e.PutBits(0x123456789abc, 48)
	data, err := e.Finish()
	require.NoError(t, err)
	for more := range 12 {
		d := NewRangeDecoder(append(data[:len(data):len(data)], make([]byte, more)...))
		require.Equal(t, uint64(0x123456789abc), d.GetBits(48))
		require.Equal(t, len(data)+more > 12, d.Finish() != nil, "%d bytes, and %d", len(data), more)
	}
}

// TestCompactCosts checks that the costs of rows add up to the size of the packet.
func TestCompactCosts(t *testing.T) {
	crowd := newCrowd(t)
	x := newCompactTest(t, crowd.layout.Components...)
	x.buf, x.packedBuf = make([]byte, 1<<20), make([]byte, 1<<20)
	rows := crowdPacket(crowd)
	data := x.check(rows)
	var sum uint64
	for _, cost := range x.sender.Costs {
		require.LessOrEqual(t, int(cost.Field), x.layout.Fields()+len(x.layout.Components))
		sum += uint64(cost.Bits)
	}
	require.InEpsilon(t, 8*len(data), float64(sum)/CostUnit, 0.001)
}

// TestCompactWidthIsTheMost checks that no row takes more than CompactWidth, however unlikely its decisions are.
func TestCompactWidthIsTheMost(t *testing.T) {
	rng := randomOf(t)
	most := 0.0
	for range roundsOf(3000, 1500) {
		s := &script{randomBytes(rng, 400)}
		x := newCompactTest(t, s.componentWithReferences())
		c := &x.layout.Components[0]
		x.ours.each(func(d *decision) { // as sure as can be of either
			if *d = leastValue &^ mostMet; rng.IntN(2) == 0 {
				*d = mostValue &^ mostMet
			}
		})
		base2 := s.row(c, nil)
		base := s.row(c, base2)
		past := []Past{{}, {Base: base}, {Base: base, Base2: base2, Ratio: 1 << 16}}[rng.IntN(3)]
		e := NewRangeEncoder(x.buf)
		x.sender.Begin(x.ours)
		x.sender.Entity(rng.IntN(2) == 0)
		before := e.spent()
		x.sender.EncodeRow(&e, 0, s.row(c, base), &past)
		taken := float64(e.spent()-before) / CostUnit
		require.LessOrEqual(t, taken, float64(c.CompactWidth()), "%+v", c.Fields)
		most = max(most, taken/float64(c.CompactWidth()))
	}
	require.Greater(t, most, 0.3)
}
