package wire

// NetID identifies an entity on the wire; replication.NetID is the public twin.
type NetID struct {
	Slot       uint32
	Generation uint16
}
