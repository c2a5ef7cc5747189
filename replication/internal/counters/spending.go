package counters

// Spending is what a peer has been sent.
type Spending struct{ Bits, Updates, Wholes, Despawns int }
