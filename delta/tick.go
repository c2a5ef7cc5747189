package delta

// Tick is the server's step counter. It wraps, so ticks are compared only by serial
// number arithmetic (RFC 1982), which orders any two that are less than 2^31 apart.
// That order is not transitive: never sort by it.
type Tick uint32

// After reports whether t is later than u.
func (t Tick) After(u Tick) bool { return int32(t-u) > 0 }

// Before reports whether t is earlier than u.
func (t Tick) Before(u Tick) bool { return int32(t-u) < 0 }
