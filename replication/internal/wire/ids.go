package wire

// NetID becomes replication.NetID at the face.
type NetID struct {
	Slot       uint32
	Generation uint16
}
