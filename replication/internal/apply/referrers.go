package apply

import (
	"iter"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// References at the client: NetIDs become entities. The entity that a row names may not have
// arrived, may be out of view or gone; then the field is the zero entity. The client remembers who
// refers to which NetID. When an entity comes or goes, it updates the fields that refer to it, at
// the end of [Client.Frame].

// referrers knows the references in everything that the world shows. There is a link for each field
// that names an entity, whether that is here or not, so their number is bounded by the number of
// such fields.
type referrers struct {
	Links []Link // the first one is not used
	Free  uint32 // the first unused link; Sibling is the next
	Heads [][]uint32
	Limit uint32 // slots from here on are refused

	churned  []uint32 // slots with referrers whose entity came or went in this Frame
	retarget []target // relations whose targets may change in this Frame
	fresh    []target // withheld components that came in this Frame

	Unsettled []uint32 // sub-entities whose entity came or went in this Frame
}

// A Link is a reference. The links to a slot form a list, as do the links of a holder.
type Link struct {
	Holder     uint32 // the slot that has the reference
	Component  uint16
	column     uint16
	Slot       uint32 // the slot that it refers to
	generation uint16
	Next, Prev uint32 // links to the same slot; Prev is 0 for the first
	Sibling    uint32 // the next link of the same holder
}

// target is a component of an entity, mostly a relation.
type target struct {
	holder    uint32
	component uint16
}

// HeadsPage is how many slots share a page of heads. Pages, as of replicas, keep a packet from
// making the table huge by naming a high slot.
const HeadsPage = 256

// head returns the head of the list of links to a slot, or nil if there is none.
func (r *referrers) head(slot uint32) *uint32 {
	if i := int(slot / HeadsPage); i < len(r.Heads) && r.Heads[i] != nil {
		return &r.Heads[i][slot%HeadsPage]
	}
	return nil
}

// add adds a link to the list of its holder, which begins at first, and to the list of the slot
// that it refers to.
func (r *referrers) add(l Link, first *uint32) {
	if l.Slot >= r.Limit {
		return
	}
	page := int(l.Slot / HeadsPage)
	if page >= len(r.Heads) {
		r.Heads = append(r.Heads, make([][]uint32, page+1-len(r.Heads))...)
	}
	if r.Heads[page] == nil {
		r.Heads[page] = make([]uint32, HeadsPage)
	}
	head := &r.Heads[page][l.Slot%HeadsPage]
	if len(r.Links) == 0 {
		r.Links = append(r.Links, Link{})
	}
	i := r.Free
	if i == 0 {
		i = uint32(len(r.Links))
		r.Links = append(r.Links, Link{})
	} else {
		r.Free = r.Links[i].Sibling
	}
	l.Next, l.Sibling = *head, *first
	if *head != 0 {
		r.Links[*head].Prev = i
	}
	r.Links[i] = l
	*head, *first = i, i
}

// drop removes the links of a component, or of allComponents, from the list of a holder, which
// begins at first.
func (r *referrers) drop(component int, first *uint32) {
	at := first
	for *at != 0 {
		i := *at
		l := &r.Links[i]
		if component != allComponents && int(l.Component) != component {
			at = &l.Sibling
			continue
		}
		*at = l.Sibling
		if l.Prev != 0 {
			r.Links[l.Prev].Next = l.Next
		} else {
			*r.head(l.Slot) = l.Next
		}
		if l.Next != 0 {
			r.Links[l.Next].Prev = l.Prev
		}
		*l = Link{Sibling: r.Free}
		r.Free = i
	}
}

const allComponents = -1

// noteChurn notes that the entity in a slot came or went.
func (r *referrers) noteChurn(slot uint32) {
	if head := r.head(slot); head != nil && *head != 0 {
		r.churned = append(r.churned, slot)
	}
}

// subEntities returns the links by component link to a slot, which those of its sub-entities are.
func (r *referrers) subEntities(slot uint32, link int) iter.Seq[*Link] {
	return func(yield func(*Link) bool) {
		head := r.head(slot)
		if head == nil {
			return
		}
		for i := *head; i != 0; i = r.Links[i].Next {
			if l := &r.Links[i]; int(l.Component) == link && !yield(l) {
				return
			}
		}
	}
}

// linked returns the NetID that a sub-entity's link names.
func (r *referrers) linked(component int, m *replica) (id wire.NetID, ok bool) {
	for i := m.Links; i != 0; i = r.Links[i].Sibling {
		if l := &r.Links[i]; int(l.Component) == component {
			return wire.NetID{Slot: l.Slot, Generation: l.generation}, true
		}
	}
	return wire.NetID{}, false
}
