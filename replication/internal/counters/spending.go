package counters

// Spending has the totals of the entries that a peer was sent.
type Spending struct{ Bits, States, Full, Despawns int }
