package replication

import (
	"math/bits"
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// Peers that need the same slots of a block against the same baselines get the same
// bits, if their packets have named the same baselines so far: then the entries of the
// whole block are copied at once.

// A blockRun is the entries of a block as they follow one another in a packet, without
// the gap of the first.
type blockRun struct {
	// What the bits depend on.
	firstClass, lastClass int // in the cache's classes
	order                 uint
	before                delta.Names

	known       bool  // false: they have to be put together one by one
	index       int32 // its place in the cache
	next        int32 // another one of the block, -1 for none
	first, bits int   // where the bits stand in the cache's buffer
	after       delta.Names
	gaps        uint64 // between the entries
	work        int    // of the entries
	firstMember int    // their runs, in the cache's members
	lastMember  int
	copies      uint32 // packets that got them
}

const (
	// maxShared bounds the classes of a block that is kept for other peers.
	maxShared = 8
	// maxBlockBits bounds its size.
	maxBlockBits = 8 << 13
	// maxRunBytes bounds the bytes of all runs and blocks that are kept at a time.
	maxRunBytes = 16 << 20
)

// block returns the entries of slots d of a block, all of them updates of the given
// classes, as they stand behind entries that named these baselines; or nil if they have
// to be written one by one. The pointer is valid until the next call.
func (c *runCache) block(b int, d uint64, classes []class, order uint, names *delta.Names) *blockRun {
	head := &c.blockHeads[b]
	if head.filling != c.filling {
		head.filling, head.first = c.filling, -1
	}
	for i := head.first; i >= 0; i = c.blocks[i].next {
		r := &c.blocks[i]
		if r.order == order && slices.Equal(c.blockClasses[r.firstClass:r.lastClass], classes) && r.before == *names {
			if r.known {
				return r
			}
			return nil
		}
	}
	r := blockRun{index: int32(len(c.blocks)), next: head.first, order: order, before: *names, firstClass: len(c.blockClasses), firstMember: len(c.members)}
	c.blockClasses = append(c.blockClasses, classes...)
	r.lastClass = len(c.blockClasses)
	if r.known = c.gather(b, d, classes); r.known {
		c.join(&r, b, d)
	}
	r.lastMember = len(c.members)
	head.first = int32(len(c.blocks))
	c.blocks = append(c.blocks, r)
	if !r.known {
		return nil
	}
	return &c.blocks[head.first]
}

// blockRun returns the entries of slots d of a block for the open packet, or nil if they
// have to be written one by one. Those of slots that are all in step need no classes.
func (p *Peer) blockRun(b int, d, step uint64) *blockRun {
	c, k := p.runs, &p.packet
	if step != d {
		if !p.shareable(d) {
			return nil
		}
		return c.block(b, d, p.classes.list, k.order, &k.names)
	}
	head := &c.stepHeads[b]
	if head.filling != c.filling {
		head.filling, head.first = c.filling, -1
	}
	base := p.base()
	for i := head.first; i >= 0; i = c.steps[i].next {
		if s := &c.steps[i]; s.base == base && s.mask == d {
			if r := &c.blocks[s.run]; r.order == k.order && r.before == k.names {
				return r
			}
		}
	}
	p.classes.list = p.classes.list[:0]
	p.classes.addInStep(b, d, base)
	if !p.shareable(d) {
		return nil
	}
	r := c.block(b, d, p.classes.list, k.order, &k.names)
	if r != nil {
		c.steps = append(c.steps, stepRun{base: base, mask: d, run: r.index, next: head.first})
		head.first = int32(len(c.steps) - 1)
	}
	return r
}

// A stepRun finds the entries of slots that are in step with a peer.
type stepRun struct {
	mask uint64
	base delta.Tick
	run  int32
	next int32 // another one of the block, -1 for none
}

// gather makes the runs of slots of a block, and returns false if they are too large or
// one is not to be had.
func (c *runCache) gather(b int, d uint64, classes []class) bool {
	size := 0
	for ; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		r := c.update(b<<6+i, classOf(classes, 1<<i).Baselines)
		if r == nil || c.jumped(b<<6+i, int(r.bits)) {
			return false
		}
		c.members = append(c.members, r.index)
		size += int(r.bits)
	}
	return size < maxBlockBits
}

// join writes the entries of the gathered runs behind each other.
func (c *runCache) join(r *blockRun, b int, d uint64) {
	runs := c.members[r.firstMember:]
	size := 0
	for _, i := range runs {
		size += int(c.runs[i].bits) + headBits
	}
	c.reserve(size / 8)
	w := bitbuf.NewWriter(c.buf[c.used:])
	x := context{next: b<<6 + bits.TrailingZeros64(d), names: r.before}
	for k := 0; d != 0; d &= d - 1 {
		slot := b<<6 + bits.TrailingZeros64(d)
		run := &c.runs[runs[k]]
		if k > 0 {
			r.gaps += uint64(slot - x.next)
			w.WriteRice(uint64(slot-x.next), r.order)
		}
		x.next = slot + 1
		r.work += int(run.work)
		writeUpdate(&w, &x.names, run.baselines, run.kind == entryRestructure)
		w.WriteRun(c.bytes(run), int(run.bits))
		k++
	}
	r.first, r.bits, r.after = c.used, w.Len(), x.names
	c.used += len(w.Bytes())
}
