//go:build !js

package inspect

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/arche-replicate/arche-replicate/replication"
)

// metrics are written in Prometheus' text format. All samples of a name follow one another.
type metrics struct{ strings.Builder }

// family begins a metric. kind is counter, gauge or histogram.
func (m *metrics) family(name, kind, help string) {
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes a value. labels are names and values in turn.
func (m *metrics) sample(name string, value float64, labels ...string) {
	m.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		m.WriteByte("{,"[min(i, 1)])
		m.WriteString(labels[i] + `="` + escape.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD")) + `"`)
	}
	if len(labels) > 0 {
		m.WriteByte('}')
	}
	m.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// one writes a metric with one value.
func (m *metrics) one(name, kind, help string, value float64) {
	m.family(name, kind, help)
	m.sample(name, value)
}

// histogram writes how many values were at most as large as each limit. The last class has no limit.
func (m *metrics) histogram(name, help string, counts []uint64, limit func(i int) float64, sum float64) {
	m.family(name, "histogram", help)
	var n uint64
	for i, c := range counts {
		n += c
		le := "+Inf"
		if i < len(counts)-1 {
			le = strconv.FormatFloat(limit(i), 'g', -1, 64)
		}
		m.sample(name+"_bucket", float64(n), "le", le)
	}
	m.sample(name+"_sum", sum)
	m.sample(name+"_count", float64(n))
}

// unusual are counters whose names do not follow from their types. They are gauges.
var unusual = map[string]string{
	"Budget": "budget_bytes_per_second", "Backlog": "backlog_bytes", "LargestAcked": "largest_acked_bytes",
	"LostLarge": "large_packets_lost_in_a_row", "SendInterval": "send_interval_ticks", "Pace": "pace_ratio",
}

// nameOf returns the name and kind of the metric of a counter, "" if it has none.
func nameOf(f reflect.StructField) (name, kind string) {
	if special, ok := unusual[f.Name]; ok {
		return special, "gauge"
	}
	name = snake(f.Name)
	switch {
	case f.Type == reflect.TypeFor[time.Duration]():
		return name + "_seconds", "gauge"
	case f.Type.Kind() == reflect.Uint64:
		return name + "_total", "counter"
	case f.Type.Kind() == reflect.Int, f.Type.Kind() == reflect.Uint32, f.Type.Kind() == reflect.Bool:
		return name, "gauge"
	}
	return "", ""
}

// snake writes MessageBytes as message_bytes.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// valueOf returns the value of a counter, times in seconds.
func valueOf(v reflect.Value) float64 {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.Seconds()
	case bool:
		if x {
			return 1
		}
		return 0
	}
	switch {
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return float64(v.Int())
}

// counters writes all counters of statistics that are wanted.
func (m *metrics) counters(prefix string, stats any, wanted func(kind string) bool) {
	v := reflect.ValueOf(stats).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if name, kind := nameOf(f); name != "" && wanted(kind) {
			m.one(prefix+name, kind, help(v.Type(), f), valueOf(v.Field(i)))
		}
	}
}

func help(t reflect.Type, f reflect.StructField) string {
	return "See replication." + t.Name() + "." + f.Name + "."
}

// each are the counters of peers that are shown one by one.
var each = []string{
	"Packets", "Bytes", "MessageBytes", "Acked", "Lost", "Updates", "FullStates", "KeyframeFallbacks", "OverBudget",
	"SendErrors", "RefusedPackets", "RoundTrip", "Budget", "Backlog", "Compact",
}

func (e *server) appendMetrics(m *metrics, s *Inspector) {
	m.counters("replication_server_", &e.stats, func(string) bool { return true })
	m.one("replication_server_replicates_total", "counter", "Calls of Replicate.", float64(s.total.steps))
	m.one("replication_server_replicate_seconds_total", "counter", "Time in Replicate.", s.total.busy.Seconds())
	m.one("replication_server_replicate_max_seconds", "gauge", "The longest Replicate.", s.total.longest.Seconds())
	ages, sum := e.stats.BaselineAges, 0.0
	for age := range ages {
		sum += float64(age) * float64(ages[age])
	}
	m.histogram("replication_server_baseline_age_ticks",
		"Entities sent, by the age of their baseline. Those older than 31 count as 32.", ages[1:],
		func(i int) float64 { return float64(i + 1) }, sum)
	m.one("replication_server_without_baseline_total", "counter", "Entities sent without a baseline.", float64(ages[0]))
	const bits = "replication_server_field_bits_total"
	m.family(bits, "counter", "Bits sent to all peers by field. Without a field: which components changed.")
	for i := range e.components {
		c := &e.components[i]
		for _, f := range c.fields {
			m.sample(bits, float64(e.stats.Fields[f.number].Bits), "component", c.name, "field", f.name)
		}
	}
	all := e.gone
	for _, p := range e.peers {
		addCounters(&all, &p.stats)
	}
	m.counters("replication_peers_", &all, func(kind string) bool { return kind == "counter" })
	t := reflect.TypeFor[replication.PeerStats]()
	for _, field := range each {
		f, _ := t.FieldByName(field)
		name, kind := nameOf(f)
		name = "replication_peer_" + name
		m.family(name, kind, help(t, f))
		for _, p := range e.peers {
			if p.record != nil {
				m.sample(name, valueOf(reflect.ValueOf(p.stats).FieldByIndex(f.Index)),
					"peer", strconv.Itoa(p.number), "remote", p.remote)
			}
		}
	}
}

func (e *client) appendMetrics(m *metrics, s *Inspector) {
	m.counters("replication_client_", &e.stats, func(string) bool { return true })
	m.one("replication_client_tick", "gauge", "The newest tick received.", float64(e.tick))
	m.one("replication_client_frames_total", "counter", "Calls of Frame.", float64(s.total.steps))
	m.one("replication_client_frame_seconds_total", "counter", "Time in Frame.", s.total.busy.Seconds())
	m.one("replication_client_receive_seconds_total", "counter", "Time in Receive.", s.total.receive.Seconds())
	m.one("replication_client_sent_bytes_total", "counter", "Bytes sent.", float64(s.total.sent.bytes))
	if e.shows != nil {
		m.one("replication_client_starved_frames_total", "counter", "See interpolation.Stats.Starved.",
			float64(e.starved))
	}
	if e.predicts != nil {
		one := func(name, field string, n uint64) {
			m.one("replication_client_"+name+"_total", "counter", "See predict.Stats."+field+".", float64(n))
		}
		one("rollbacks", "Rollbacks", e.before.Rollbacks)
		one("ticks_again", "Again", e.before.Again)
		one("corrections", "Corrections", e.before.Corrections)
	}
}

// metrics returns all metrics.
func (s *Inspector) metrics() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m metrics
	s.end.(interface{ appendMetrics(*metrics, *Inspector) }).appendMetrics(&m, s)
	of := "server"
	if _, is := s.end.(*client); is {
		of = "client"
	}
	down := s.down()
	m.histogram("replication_"+of+"_packet_size_bytes", "Packets from the server by size.", down.classes[:],
		func(i int) float64 { return float64((i + 1) * s.mtu / (classes - 1)) }, float64(down.bytes))
	return m.String()
}
