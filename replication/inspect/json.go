package inspect

import (
	"reflect"
	"time"
)

func (e *server) appendJSON(j *encoder, since int64, v *record, number int) {
	j.key("kind").text("server")
	j.key("mtu").integer(int64(e.mtu()))
	j.key("tick").count(uint64(e.stats.Tick))
	j.key("rate").integer(int64(e.in.Opts.TickRate))
	j.key("counters")
	appendCounters(j, &e.stats)
	j.key("ages").array()
	for _, n := range e.stats.BaselineAges {
		j.count(n)
	}
	j.closeArray()
	j.key("components").array()
	for _, c := range e.components {
		j.object()
		j.key("name").text(c.name)
		j.key("fields").array()
		for _, f := range c.fields {
			j.object()
			j.key("name").text(f.name)
			j.key("codec").text(f.codec)
			j.key("fixed").integer(int64(f.fixed))
			j.key("raw").integer(int64(f.raw))
			j.key("bits").count(e.stats.Fields[f.number].Bits)
			j.close()
		}
		j.closeArray()
		j.close()
	}
	j.closeArray()
	j.key("peers").array()
	for _, p := range e.peers {
		if p.record != nil {
			p.appendJSON(j, v.n)
		}
	}
	j.closeArray()
	for _, p := range e.peers {
		if p.number == number && p.record != nil {
			j.key("peer").object()
			j.key("number").integer(int64(p.number))
			j.key("mtu").integer(int64(p.inside.MTU))
			j.key("counters")
			appendCounters(j, &p.stats)
			p.record.appendJSON(j, since, v.n)
			j.close()
		}
	}
}

// appendJSON appends the peer's row of the table: rates are means of the last second.
func (p *peer) appendJSON(j *encoder, n int64) {
	mean := func(key int) float32 {
		sum, count := float32(0), float32(0)
		for i := max(p.record.first, n-4, 0); i < n; i++ {
			if v := p.record.at(i, key); v == v {
				sum, count = sum+v, count+1
			}
		}
		return sum / count
	}
	last := func(key int) float32 { return p.record.at(max(n-1, 0), key) }
	s := &p.stats
	j.object()
	j.key("number").integer(int64(p.number))
	j.key("remote").text(p.remote)
	j.key("compact").boolean(s.Compact)
	j.key("bandwidth").number(mean(pBandwidth))
	j.key("roundTrip").number(last(pRoundTrip))
	j.key("loss").number(last(pLoss))
	j.key("age").number(last(pAge))
	j.key("budget").integer(int64(s.Budget))
	j.key("backlog").integer(int64(s.Backlog))
	j.key("sent").number(mean(pSent))
	j.key("hidden").number(mean(pHidden))
	j.key("turn").number(mean(pTurn))
	j.key("room").number(mean(pRoom))
	j.key("sendErrors").count(s.SendErrors)
	j.key("lastSendError").text(sentence(s.LastSendError))
	j.close()
}

func sentence(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (e *client) appendJSON(j *encoder, _ int64, _ *record, _ int) {
	j.key("kind").text("client")
	j.key("status").text(e.status.String())
	j.key("tick").count(uint64(e.tick))
	j.key("settled").count(uint64(e.settled))
	j.key("rate").integer(int64(e.rate))
	j.key("counters")
	appendCounters(j, &e.stats)
	if e.predicts != nil {
		j.key("prediction")
		appendCounters(j, &e.before)
		j.key("causes").array()
		cause := func(name string, n uint64) {
			j.object()
			j.key("name").text(name)
			j.key("count").count(n)
			j.close()
		}
		cause("inputs", e.before.Causes.Inputs)
		cause("lifetimes", e.before.Causes.Lifetimes)
		for _, c := range e.before.Causes.Components {
			cause(c.Name, c.Count)
		}
		j.closeArray()
	}
	j.key("components").array()
	j.object()
	j.key("name").text("States")
	j.key("fields").array()
	j.closeArray()
	j.close()
	j.closeArray()
}

// appendCounters appends the counters of statistics by their names in Go, durations in milliseconds.
func appendCounters(j *encoder, stats any) {
	j.object()
	v := reflect.ValueOf(stats).Elem()
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch x := f.Interface().(type) {
		case time.Duration:
			j.key(name).number(millis(x))
		case error:
			j.key(name).text(x.Error())
		case string:
			j.key(name).text(x)
		case bool:
			j.key(name).boolean(x)
		case float64:
			j.key(name).number(float32(x))
		default:
			switch {
			case f.CanUint():
				j.key(name).count(f.Uint())
			case f.CanInt():
				j.key(name).integer(f.Int())
			}
		}
	}
	j.close()
}

// addCounters adds the counters of one peer to those of others.
func addCounters[T any](sum, stats *T) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(stats).Elem()
	for i := range to.NumField() {
		if to.Field(i).Kind() == reflect.Uint64 {
			to.Field(i).SetUint(to.Field(i).Uint() + from.Field(i).Uint())
		}
	}
}
