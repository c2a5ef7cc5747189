package recording

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// state explains a state packet of so many bytes.
func (x *explainer) state(bytes int64) {
	t, p := x.trace, x.now
	p.Kind, p.Tick, p.Sequence, p.Compact = "state", replication.Tick(t.Header.Tick), t.Header.Sequence, t.Compact
	words := []string{[wire.HeaderForms]string{"long", "short", "implied tick"}[t.Header.Form]}
	if t.Header.Settled {
		words = append(words, "settled")
	}
	if t.Header.Form == wire.HeaderLong && t.Header.Complete {
		words = append(words, "complete")
	}
	if t.Header.Interval > 1 {
		words = append(words, fmt.Sprintf("every %d ticks", t.Header.Interval))
	}
	x.add("header", strings.Join(words, ", "), 8*bytes*delta.CostUnit-int64(t.Total))
	if t.Read && t.Compact {
		text := "a new one"
		if t.Named {
			text = fmt.Sprintf("as after the packet of tick %d", t.Base)
		}
		x.add("model", text, int64(t.Front))
	} else if t.Read && t.Total > 0 {
		x.add("baselines", fmt.Sprintf("tick %d", t.Base), int64(t.Front))
		x.add("slots", fmt.Sprintf("%d listed", len(t.Entries)), int64(t.Slots))
	}
	for i := range t.Entries {
		x.entry(&t.Entries[i])
	}
	x.at = PacketPart{Slot: -1}
	if t.Open {
		e := &t.Entry
		x.at.Slot, x.at.Against = int(e.Slot), against(e)
		x.add("end", fmt.Sprintf("the entry of slot %d was read up to its baselines", e.Slot), t.End)
	} else if t.End != 0 {
		x.add("end", "", t.End)
	}
}

// against returns the baselines of an entry, the first one first.
func against(e *receive.TracedEntry) (ticks []replication.Tick) {
	switch e.Kind {
	case wire.EntryUpdate, wire.EntryNamed, wire.EntrySetChange:
	default:
		return nil
	}
	n := &e.Name
	ticks = append(ticks, n.A1)
	for _, age := range []delta.Tick{n.Span, n.Third, n.Fourth} {
		if age != 0 {
			ticks = append(ticks, n.A1-age)
		}
	}
	return ticks
}

// entry explains an entry of a state packet.
func (x *explainer) entry(e *receive.TracedEntry) {
	x.at = PacketPart{Slot: int(e.Slot), Tick: e.Tick, Against: against(e)}
	what, detail := "update", ""
	switch {
	case e.Assembled:
		what = "assembled"
	case e.Kind == wire.EntryFull && e.New:
		what = "new"
	case e.Kind == wire.EntryFull:
		what = "full"
	case e.Kind == wire.EntrySetChange:
		what = "set"
	case e.Kind == wire.EntryDespawn && e.Left:
		what, detail = "despawn", "out of view"
	case e.Kind == wire.EntryDespawn:
		what = "despawn"
	case e.Kind == wire.EntryPart:
		what = "part"
		detail = fmt.Sprintf("bytes %d to %d of %d", e.Part[2]*e.Part[1], e.Part[2]*e.Part[1]+e.Part[3], e.Part[0])
	}
	s := x.inside.Schema
	if !x.resources.In(int(e.Slot)) {
		x.at.Entity = replication.NetID{Slot: e.Slot, Generation: e.Generation}
	}
	details := []string{detail}
	for k := range s.Components {
		switch had, has := e.Sets[0].Has(k), e.Sets[1].Has(k); {
		case had && !has:
			details = append(details, "without "+s.Components[k].Name)
		case has && !had && (e.Kind != wire.EntryFull || s.Components[k].Words == 0):
			details = append(details, "with "+s.Components[k].Name)
		}
	}
	for i := range e.Rows {
		if r := &e.Rows[i]; r.Component == s.Link {
			owner, _ := s.Components[s.Link].Value(0, r.Row).(wire.NetID)
			x.at.Entity = replication.NetID(owner)
			details = append(details, fmt.Sprintf("what not all clients see of it, in slot %d", e.Slot))
		}
	}
	detail = strings.Join(slices.DeleteFunc(details, func(text string) bool { return text == "" }), ", ")
	head := e.Head + e.Set
	switch {
	case e.Assembled:
		head = 0
	case e.Rows == nil: // the bytes of a part
		head += e.Body
	}
	x.add(what, detail, int64(head))
	if e.Costs == nil && e.Rows != nil && !e.Assembled {
		x.add("rows", "", int64(e.Body))
	}
	for i := range e.Rows {
		x.row(e, &e.Rows[i])
	}
}

// row adds the parts of a row.
func (x *explainer) row(e *receive.TracedEntry, r *receive.TracedRow) {
	c := &x.inside.Schema.Components[r.Component]
	costs := e.Costs
	if e.Assembled {
		costs = nil
	}
	fields, mask := x.costsOf(x.columns, r.Component, len(c.Columns), costs, 1)
	same, residuals := receive.SameRow(r.Row, r.Base), slices.ContainsFunc(fields, func(n int64) bool { return n > 0 })
	if mask > 0 {
		detail := ""
		switch {
		case residuals:
		case same:
			detail = "unchanged"
		default:
			detail = "as predicted"
		}
		x.add("mask", detail, mask).Component = x.name(c)
	}
	if r.Base != nil && same && !residuals {
		return
	}
	for i := range c.Columns {
		x.field(c, i, r.Row, r.Base, fields[i])
	}
}

// field adds a field of a row.
func (x *explainer) field(c *schema.Component, i int, row, base []uint32, cost int64) {
	col := &c.Columns[i]
	part := x.add("field", "", cost)
	part.Component, part.Field, part.Code = x.name(c), col.Path, codeText(c, i, row)
	if base != nil {
		part.Base = codeText(c, i, base)
	}
	if col.StandIn == nil {
		part.Value = c.Value(i, row)
		if id, ok := part.Value.(wire.NetID); ok {
			part.Value = replication.NetID(id)
		}
	}
}

// name returns the name of a component. The one that links a sub-entity to its entity has none that users know.
func (x *explainer) name(c *schema.Component) string {
	if s := x.inside.Schema; s.Link >= 0 && c == &s.Components[s.Link] {
		return "link"
	}
	return c.Name
}

// codeText returns the code of a column in a row.
func codeText(c *schema.Component, i int, row []uint32) string {
	col := &c.Columns[i]
	words := row[col.Word:][:col.Codec.Words()]
	switch n := len(col.Codec.AppendLayout(nil, "")); {
	case slices.Contains(c.References, i):
		if words[0] == 0 {
			return "-"
		}
		return replication.NetID{Slot: words[0] - 1, Generation: uint16(words[1])}.String()
	case col.Codec.IsText():
		return fmt.Sprintf("%d bytes", words[0])
	case n > 1 || len(words) > 2:
		texts := make([]string, len(words))
		for i, w := range words {
			texts[i] = strconv.FormatUint(uint64(w), 10)
		}
		return strings.Join(texts, ":")
	}
	return strconv.FormatUint(col.Code(row), 10)
}
