package delta

// Tick is the server's step counter. It wraps at 2^32, so ticks are compared and subtracted by serial number arithmetic
// (RFC 1982), which is right for any two that are less than 2^31 apart. That order is not transitive: never sort by it.
type Tick uint32

// After reports whether t is later than u.
func (t Tick) After(u Tick) bool { return int32(t-u) > 0 }

// Before reports whether t is earlier than u.
func (t Tick) Before(u Tick) bool { return int32(t-u) < 0 }

// Sub returns how many ticks t is after u, negative if it is before.
func (t Tick) Sub(u Tick) int { return int(int32(t - u)) }

// Add returns the tick n ticks after t, or before it if n is negative.
func (t Tick) Add(n int) Tick { return t + Tick(n) }
