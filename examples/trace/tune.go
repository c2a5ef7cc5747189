package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
)

// tuning is the effect of tables for [replication.Schema.Tune] that were made from the first half of
// a recording. Bytes are those of [report.EntityBytesPerTick]; the changes are negative if less is
// sent.
type tuning struct {
	Replays int    `json:"replays"`
	Ticks   int64  `json:"ticks"`  // of the recording, from which the tables were made
	Tables  string `json:"tables"` // the text for Tune; empty if nothing would be saved

	BytesPerTick float64 `json:"bytes_per_tick"` // change, in all of the recording
	Share        float64 `json:"share"`          // the same as a share

	// The same for the second half, which the tables were not made from: what to expect of other matches.
	OtherBytesPerTick float64 `json:"other_bytes_per_tick"`
	OtherShare        float64 `json:"other_share"`
}

// Limits of the search for tables.
const (
	tuneReach = 3     // farthest change of an order
	tuneLeast = 0.001 // share of all bits that a field's table must save
)

// tuner makes tables.
type tuner struct {
	cfg    config
	data   []byte // the trace
	bar    *progressBar
	tuning tuning
	half   config    // replays the first half
	names  []string  // fields that can have tables
	before report    // of the first half, without tables
	orders [][]uint8 // by field
	saved  []float64 // bits per tick, by field
}

// tune makes tables from the first half of a trace and replays all of it with them. The report is
// that of the trace without tables, except that wrong mirrors of the last replay count.
func tune(cfg config, src io.Reader, bar *progressBar) (report, error) {
	data, err := io.ReadAll(src)
	if err != nil {
		return report{}, &fault{file: cfg.name(), reason: "cannot be read: " + err.Error()}
	}
	t := tuner{cfg: cfg, data: data, bar: bar}
	base, err := t.replay(cfg, "as it is")
	if err != nil {
		return report{}, err
	}
	if err := t.findNames(); err != nil {
		return report{}, err
	}
	t.half = cfg
	t.half.ticks = int(max(base.Ticks/2, 1))
	t.tuning.Ticks = int64(t.half.ticks)
	if err := t.search(); err != nil {
		return report{}, err
	}
	if err := t.measure(&base); err != nil {
		return report{}, err
	}
	base.Tuning = &t.tuning
	return base, nil
}

// replay replays the trace.
func (t *tuner) replay(cfg config, label string) (report, error) {
	t.tuning.Replays++
	t.bar.label = fmt.Sprintf("replay %d, %s: ", t.tuning.Replays, label)
	return run(cfg, bytes.NewReader(t.data), t.bar.tick)
}

// findNames lists the fields that can have tables.
func (t *tuner) findNames() error {
	trace, release, err := openRows(t.cfg, bytes.NewReader(t.data))
	if err != nil {
		return err
	}
	defer release()
	schema, err := buildSchema(trace.components)
	if err != nil {
		return trace.faultAt(trace.typesLine, err)
	}
	for line := range strings.Lines(schema.Text()) {
		if name, _, _ := strings.Cut(line, " "); tuneSchema(schema, name+"=0") == nil {
			t.names = append(t.names, name)
		}
	}
	t.orders, t.saved = make([][]uint8, len(t.names)), make([]float64, len(t.names))
	return nil
}

// search tries each order in place of each other one, in all fields at once: they hardly affect each
// other.
func (t *tuner) search() (err error) {
	if t.before, err = t.replay(t.half, "the first half"); err != nil {
		return err
	}
	if len(t.names) == 0 {
		return nil
	}
	for i := range delta.MaxOrders {
		if err := t.searchFor(i); err != nil {
			return err
		}
	}
	return nil
}

// searchFor looks for what to put in place of one order.
func (t *tuner) searchFor(order int) error {
	best, saved := make([]int, len(t.names)), make([]float64, len(t.names))
	for i := range best {
		best[i] = order
	}
	try := func(with int) (used bool, err error) {
		cfg := t.half
		cfg.tables = t.text(func(int) []uint8 {
			orders := identity(order + 1)
			orders[order] = uint8(with)
			return orders
		})
		r, err := t.replay(cfg, fmt.Sprintf("order %d for %d", with, order))
		for i, name := range t.names {
			gain := bitsOf(t.before.Fields, name) - bitsOf(r.Fields, name)
			used = used || gain != 0
			if gain > saved[i] {
				best[i], saved[i] = with, gain
			}
		}
		return used, err
	}
	// First the neighbour: if it changes nothing, no field has this order.
	tries := []int{order + 1, order - 1}
	if order+1 == delta.MaxOrders {
		tries = tries[1:]
	}
	for n := 2; n <= tuneReach; n++ {
		tries = append(tries, order+n, order-n)
	}
	for i, with := range tries {
		if with < 0 || with >= delta.MaxOrders {
			continue
		}
		used, err := try(with)
		if err != nil {
			return err
		}
		if i == 0 && !used {
			return nil
		}
	}
	for i := range t.names {
		if best[i] != order {
			for len(t.orders[i]) <= order {
				t.orders[i] = append(t.orders[i], uint8(len(t.orders[i])))
			}
			t.orders[i][order] = uint8(best[i])
			t.saved[i] += saved[i]
		}
	}
	return nil
}

// identity returns n orders that stay as they are.
func identity(n int) []uint8 {
	orders := make([]uint8, n)
	for i := range orders {
		orders[i] = uint8(i)
	}
	return orders
}

// text writes tables; fields with none are left out.
func (t *tuner) text(of func(i int) []uint8) string {
	var items []string
	for i, name := range t.names {
		if orders := of(i); len(orders) > 0 {
			item := name + "="
			for _, k := range orders {
				item += strconv.FormatUint(uint64(k), 16)
			}
			items = append(items, item)
		}
	}
	return strings.Join(items, " ")
}

// measure replays the trace with the tables.
func (t *tuner) measure(base *report) error {
	least := t.before.EntityBytesPerTick * 8 * tuneLeast
	t.tuning.Tables = t.text(func(i int) []uint8 {
		if t.saved[i] < least {
			return nil
		}
		return t.orders[i]
	})
	if t.tuning.Tables == "" {
		return nil
	}
	cfg, half := t.cfg, t.half
	cfg.tables, half.tables = t.tuning.Tables, t.tuning.Tables
	all, err := t.replay(cfg, "with tables")
	if err != nil {
		return err
	}
	first, err := t.replay(half, "with tables, the first half")
	if err != nil {
		return err
	}
	base.blame("with tables", &all)
	t.tuning.BytesPerTick = all.EntityBytesPerTick - base.EntityBytesPerTick
	t.tuning.Share = quotient(t.tuning.BytesPerTick, base.EntityBytesPerTick)
	was, is := t.afterHalf(base, &t.before), t.afterHalf(&all, &first)
	t.tuning.OtherBytesPerTick = is - was
	t.tuning.OtherShare = quotient(is-was, was)
	return nil
}

// afterHalf returns the bytes per tick of the second half from reports of all and of the first half.
func (t *tuner) afterHalf(all, first *report) float64 {
	measured := func(r *report) float64 { return float64(max(r.Ticks-int64(t.cfg.rtt)-2, 0)) }
	n := measured(all) - measured(first)
	if n <= 0 {
		return 0
	}
	return (all.EntityBytesPerTick*measured(all) - first.EntityBytesPerTick*measured(first)) / n
}

// tuneSchema is Tune with the library's panic as an error: here the text comes from the user.
func tuneSchema(schema *replication.Schema, tables string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s", strings.TrimPrefix(fmt.Sprint(p), "replication: "))
		}
	}()
	schema.Tune(tables)
	return nil
}

const tuningText = `
tables for Packed, made from the first %d ticks in %d replays; register all types, then add at both ends

    schema.Tune(%q)

entities take %+.1f bytes/tick (%+.1f %%) with them; in the other ticks, from which they were not made,
%+.1f bytes/tick (%+.1f %%); they take no bytes themselves and no time
`

// writeTable prints the tables, after the report.
func (t *tuning) writeTable(b *strings.Builder) {
	if t.Tables == "" {
		fmt.Fprintf(b, "\nno tables: in %d replays none saved anything worth having\n", t.Replays)
		return
	}
	fmt.Fprintf(b, tuningText, t.Ticks, t.Replays, t.Tables, t.BytesPerTick, t.Share*100, t.OtherBytesPerTick,
		t.OtherShare*100)
}
