package replication

import "unsafe"

// markersAt returns the n markers from p on.
func markersAt(p unsafe.Pointer, n int) []Replicated { return unsafe.Slice((*Replicated)(p), n) }
