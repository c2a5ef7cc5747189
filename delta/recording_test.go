package delta

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/quantize"
)

// A traceRow is the row of an entity as a server codes it for a peer.
type traceRow struct {
	component int
	entity    int
	cur       []uint32
	past      Past
	nearer    [2][]uint32 // scratch memory
}

// A recording is the rows of a trace, by tick.
type recording struct {
	layout *Layout
	ticks  [][]traceRow // entities one behind the other
}

// A traceColumn turns cells into codes.
type traceColumn struct {
	cells int
	parse func(cells []string, row []uint32)
}

type traceVersion struct {
	at   Tick
	rows [][]uint32 // by component, nil for those that it does not have
}

// traceChooser chooses the second, third and fourth baseline of an entity whose first one is of tick
// a1: versions are those before it that are known to have come, oldest first.
type traceChooser func(versions []traceVersion, a1, now Tick) (others [3]*traceVersion)

// traceAt returns the version that is span ticks older than the first baseline, if there is one
// and it is not too near to predict from.
func traceAt(versions []traceVersion, a1, now, span Tick) *traceVersion {
	if now-a1 <= MaxExtrapolation*span {
		for i := range versions {
			if versions[i].at+span == a1 {
				return &versions[i]
			}
		}
	}
	return nil
}

// packedBaselines chooses as replication does for Packed.
func packedBaselines(versions []traceVersion, a1, now Tick) (others [3]*traceVersion) {
	second := a1 - Second(a1)
	for d := second; d <= 8; d += SecondGrid {
		if v := traceAt(versions, a1, now, d); v != nil {
			return [3]*traceVersion{v}
		}
	}
	for d := second - 1; d > 0; d-- {
		if v := traceAt(versions, a1, now, d); v != nil {
			return [3]*traceVersion{v}
		}
	}
	return others
}

// compactBaselines chooses as replication does for Compact: the newest version that is least to
// most ticks older, or else the oldest of the newer ones; a third one that is 2 or 3 ticks older, and a
// fourth one that is 4 to 6 ticks older.
func compactBaselines(least, most Tick) traceChooser {
	var spans []Tick
	for span := least; span <= most; span++ {
		spans = append(spans, span)
	}
	for span := least - 1; span > 1; span-- {
		spans = append(spans, span)
	}
	return func(versions []traceVersion, a1, now Tick) (others [3]*traceVersion) {
		for _, span := range spans {
			if others[0] = traceAt(versions, a1, now, span); others[0] == nil {
				continue
			}
			first := max((now-a1+MaxExtrapolation-1)/MaxExtrapolation, 2)
			third := first
			for ; third < span && third <= first+1 && others[1] == nil; third++ {
				others[1] = traceAt(versions, a1, now, third)
			}
			for fourth := max(third, 4); others[1] != nil && fourth < span && fourth <= 6 && others[2] == nil; fourth++ {
				others[2] = traceAt(versions, a1, now, fourth)
			}
			return others
		}
		return packedBaselines(versions, a1, now)
	}
}

// readRecording reads a trace and finds, for everything that changes in a tick, what it is
// coded against if all that was sent is acknowledged after a round trip.
func readRecording(t testing.TB, file string, rtt Tick, choose traceChooser) *recording {
	src, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = src.Close() }()
	plain, err := zstd.NewReader(src)
	require.NoError(t, err)
	defer plain.Close()
	buffered := bufio.NewReaderSize(plain, 1<<16)
	for {
		first, err := buffered.Peek(1)
		require.NoError(t, err)
		if first[0] != '#' {
			break
		}
		_, err = buffered.ReadString('\n')
		require.NoError(t, err)
	}
	table := csv.NewReader(buffered)
	table.ReuseRecord = true
	record, err := table.Read()
	require.NoError(t, err)
	names := append([]string(nil), record...)
	types, err := table.Read()
	require.NoError(t, err)

	var components []Component
	var columns [][]traceColumn
	for i := 2; i < len(names); {
		name, _, _ := strings.Cut(names[i], ".")
		if len(components) == 0 || components[len(components)-1].Name != name {
			components = append(components, Component{Name: name})
			columns = append(columns, nil)
		}
		c := len(components) - 1
		f, col := traceField(t, types[i])
		f.Name = names[i]
		components[c].Fields = append(components[c].Fields, f)
		columns[c] = append(columns[c], col)
		i += col.cells
	}
	r := &recording{layout: NewLayout(components...)}
	histories := map[int][]traceVersion{} // recent versions, oldest first
	record, err = table.Read()
	for now := Tick(0); err == nil; now++ {
		var rows []traceRow
		for err == nil && record[0] == strconv.Itoa(int(now)) {
			entity, _ := strconv.Atoi(record[1])
			v := traceVersion{at: now}
			gone, cell := true, 2
			for c := range columns {
				comp := &r.layout.Components[c]
				var row []uint32
				for j := range columns[c] {
					col := &columns[c][j]
					if record[cell] != "" {
						if row == nil {
							row, gone = make([]uint32, comp.Words()), false
						}
						col.parse(record[cell:cell+col.cells], row[comp.Fields[j].Word():])
					}
					cell += col.cells
				}
				v.rows = append(v.rows, row)
			}
			record, err = table.Read()
			old := histories[entity]
			switch {
			case gone:
				delete(histories, entity)
			case len(old) == 0 || !slices.EqualFunc(v.rows, old[len(old)-1].rows, slices.Equal[[]uint32]):
				rows = append(rows, v.rowsAfter(old, entity, rtt, choose)...)
				if old = append(old, v); len(old) > 80 {
					old = slices.Clone(old[40:])
				}
				histories[entity] = old
			}
		}
		r.ticks = append(r.ticks, rows)
	}
	require.Equal(t, io.EOF, err)
	return r
}

// rowsAfter returns the rows of an entity's version, coded against those before it.
func (v *traceVersion) rowsAfter(old []traceVersion, entity int, rtt Tick, choose traceChooser) (rows []traceRow) {
	i := len(old) - 1
	for i >= 0 && old[i].at+rtt > v.at {
		i--
	}
	var base *traceVersion
	var others [3]*traceVersion
	if i >= 0 {
		base = &old[i]
		if rested := v.at-base.at > 2 && i == len(old)-1; !rested && v.at-base.at < 64 {
			others = choose(old[:i], base.at, v.at)
		}
	}
	for c, row := range v.rows {
		if row == nil {
			continue
		}
		x := traceRow{component: c, entity: entity, cur: row}
		if base != nil {
			x.past.Base = base.rows[c]
		}
		for i, other := range others {
			if other == nil {
				continue
			}
			row, ratio := other.rows[c], Ratio(v.at, base.at, other.at)
			switch i {
			case 0:
				x.past.Base2, x.past.Ratio = row, ratio
			case 1:
				x.past.Near, x.past.NearRatio = row, ratio
			case 2:
				x.past.Mid, x.past.MidRatio = row, ratio
			}
		}
		rows = append(rows, x)
	}
	return rows
}

func traceField(t testing.TB, text string) (Field, traceColumn) {
	typ, tag, _ := strings.Cut(text, " ")
	if strings.HasSuffix(tag, "9") && strings.HasPrefix(tag, "quat") {
		q, err := quantize.NewQuat(9)
		require.NoError(t, err)
		return Field{Kind: Quat, Bits: 9}, traceColumn{4, func(cells []string, row []uint32) {
			var v [4]float64
			for i := range v {
				x, _ := strconv.ParseFloat(cells[i], 32)
				v[i] = float64(float32(x))
			}
			code, _ := q.Encode(v)
			copy(row, quatRow(code))
		}}
	}
	if typ == "bool" {
		return Field{Kind: Plain, Bits: 1}, traceColumn{1, func(cells []string, row []uint32) {
			row[0] = 0
			if cells[0] == "true" {
				row[0] = 1
			}
		}}
	}
	var low, high, step float64
	if _, err := fmt.Sscanf(tag, "range=%g:%g,step=%g", &low, &high, &step); err == nil {
		q, err := quantize.NewFixed32(low, high, step)
		require.NoError(t, err)
		return Field{Kind: Linear, Bits: q.Bits(), Max: q.Max()}, traceColumn{1, func(cells []string, row []uint32) {
			x, _ := strconv.ParseFloat(cells[0], 32)
			code, _ := q.Encode(float64(float32(x)))
			row[0] = uint32(code)
		}}
	}
	_, err := fmt.Sscanf(tag, "range=%g:%g", &low, &high)
	require.NoError(t, err, text)
	return Field{Kind: Plain, Bits: bitbuf.Width(uint64(high - low)), Max: uint64(high - low)}, traceColumn{1, func(cells []string, row []uint32) {
		x, _ := strconv.ParseFloat(cells[0], 64)
		row[0] = uint32(x - low)
	}}
}
