package replication

// serverSender is what sends: see [workers].
type serverSender struct {
	workers workers
	hashes  []byte // memory for a packet of them
}
