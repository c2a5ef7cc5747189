package snapshot

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// slowMarkersAt is the reference of [markersAt].
func slowMarkersAt(p unsafe.Pointer, n int) []marker {
	return reflect.SliceAt(reflect.TypeFor[marker](), p, n).Interface().([]marker)
}

func TestMarkersMatchTheReference(t *testing.T) {
	markers := make([]marker, 70)
	for i := range markers {
		markers[i].slot = uint32(i + 1)
	}
	p := unsafe.Pointer(&markers[0])
	for _, n := range []int{1, CaptureRows, len(markers)} {
		got, want := markersAt(p, n), slowMarkersAt(p, n)
		require.Equal(t, want, got)
		require.Same(t, &want[0], &got[0], "the markers themselves, not copies")
	}
}
