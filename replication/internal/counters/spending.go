package counters

// Spending is what a peer has been sent.
type Spending struct{ Bits, Updates, FullStates, Despawns int }
