package game

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAimMeetsTheTarget(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		to := vec{rng.Float64()*800 - 400, rng.Float64()*800 - 400}
		velocity := vec{rng.Float64()*160 - 80, rng.Float64()*160 - 80}
		aim := intercept(to, velocity, bulletSpeed)
		seconds := aim.length() / bulletSpeed
		require.InDelta(t, 0, to.add(velocity.times(seconds)).sub(aim).length(), 1e-6, "%v %v", to, velocity)
	}
}

func TestAimAtATargetThatIsTooFast(t *testing.T) {
	require.Equal(t, vec{100, 0}, intercept(vec{100, 0}, vec{2 * bulletSpeed, 0}, bulletSpeed))
}

func TestDistanceToSegment(t *testing.T) {
	tests := []struct {
		name    string
		p, a, b vec
		want    float64
	}{
		{"beside", vec{5, 3}, vec{0, 0}, vec{10, 0}, 3},
		{"before", vec{-4, 3}, vec{0, 0}, vec{10, 0}, 5},
		{"behind", vec{13, 4}, vec{0, 0}, vec{10, 0}, 5},
		{"no way", vec{3, 4}, vec{0, 0}, vec{0, 0}, 5},
	}
	for _, tt := range tests {
		require.InDelta(t, tt.want, distanceToSegment(tt.p, tt.a, tt.b), 1e-12, tt.name)
	}
}

func TestWrapAngle(t *testing.T) {
	for turns := -3; turns <= 3; turns++ {
		for _, a := range []float64{-3, -1, 0, 1, 3} {
			require.InDelta(t, a, wrapAngle(a+2*math.Pi*float64(turns)), 1e-12)
		}
	}
}
