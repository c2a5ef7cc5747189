package baseline

import "sync/atomic"

// SharedRecords are the records of packets that many peers are sent. The logs of the peers refer to them and copy
// nothing. Workers of several peers may begin and end uses at once; the list changes only while there are none.
type SharedRecords struct {
	List []SentRecord
	uses atomic.Int32
}

// Use notes that a log refers to the records. It calls Release when it no longer does.
func (r *SharedRecords) Use() { r.uses.Add(1) }

// Release ends a use.
func (r *SharedRecords) Release() { r.uses.Add(-1) }

// InUse reports whether any log refers to the records.
func (r *SharedRecords) InUse() bool { return r.uses.Load() != 0 }
