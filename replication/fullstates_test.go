package replication

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestFullStatesFillPackets: a packet has a full state of any length, and then one that consists mostly of its component
// set. Sometimes there is room for the second one, sometimes not.
func TestFullStatesFillPackets(t *testing.T) {
	schema := NewSchema()
	var fillers, labels []reflect.Type // fillers of 1, 2, 4 bytes and so on; of the labels, every fourth is used
	for i := range 8 {
		fillers = append(fillers, reflect.ArrayOf(1<<i, reflect.TypeFor[uint8]()))
		RegisterType(schema, fillers[i], Name(fmt.Sprintf("Filler%d", i)))
	}
	for i := range min(ecs.MaskTotalBits, 240) - 16 { // Arche takes no more
		labels = append(labels, reflect.ArrayOf(i+1, reflect.TypeFor[struct{}]()))
		RegisterType(schema, labels[i], Name(fmt.Sprintf("Label%d", i)))
	}
	x := connectedWire(t, schema, WithMTU(256))
	for bytes := range 256 {
		var filled, labelled []ecs.ID
		for i, typ := range fillers {
			if bytes>>i&1 != 0 {
				filled = append(filled, ecs.TypeID(x.world, typ))
			}
		}
		for i := 3; i < len(labels); i += 4 {
			labelled = append(labelled, ecs.TypeID(x.world, labels[i]))
		}
		x.spawn(filled...)
		x.spawn(labelled...)
		for _, packet := range x.replicate() {
			require.NoError(t, x.client.Receive(packet), "with a state of %d bytes", bytes)
		}
		x.answer(x.apply()...)
	}
	x.rounds(3)
	x.requireEqual()
}
