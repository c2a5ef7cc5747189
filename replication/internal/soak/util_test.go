package soak

import (
	"cmp"
	"maps"
	"slices"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// after compares ticks, which wrap.
func after(a, b uint32) bool { return int32(a-b) > 0 }

// Kinds of packets, as in the wire format.
const (
	kindHello = iota
	kindWelcome
	kindRefuse
	kindState
	kindHashes // from the server
	kindMessages
	kindInputs
	kindDisconnect
)
