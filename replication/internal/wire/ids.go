package wire

// NetID is a NetID inside.
type NetID struct {
	Slot       uint32
	Generation uint16
}
