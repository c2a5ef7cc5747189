package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
)

// advice is the cost of precision in a recording: the cost of each field, and what half and twice
// its step would change. Nothing is estimated: the trace is replayed with that one step changed.
// Bytes are those of [report.BytesPerTick], packet headers included.
type advice struct {
	Replays             int           `json:"replays"`
	EntitiesSentPerTick float64       `json:"entities_sent_per_tick"` // to a peer, as deltas or in full
	Fields              []fieldAdvice `json:"fields"`                 // in the trace's order

	// All is the effect of changing all fields at once. It is nil unless more than one field has a
	// step.
	All *scaledPair `json:"all,omitempty"`

	bytesPerTick float64
}

// fieldAdvice is about one field of the trace, with all elements of an array together.
type fieldAdvice struct {
	Name      string `json:"name"`
	Precision string `json:"precision"` // the item of its tag, or "exact", or "raw", or "half float"

	BitsPerTick   float64 `json:"bits_per_tick"`
	BitsPerUpdate float64 `json:"bits_per_update"` // per entity sent, whatever changed in it
	Share         float64 `json:"share"`           // of all bytes sent

	// RecordedFiner reports whether the recording is finer than the step. If not, the replay with
	// half the step uses values that were rounded before, and its cost is a rough guess.
	RecordedFiner bool `json:"recorded_finer"`

	// SlowShare is the share of the field's motion that goes less than a step a tick, so that it stands
	// still and jumps. If that is more than a tenth, Even is the item of the tag that shows it evenly.
	SlowShare float64 `json:"slow_share,omitempty"`
	Even      string  `json:"even,omitempty"`

	*scaledPair
}

// scaledPair holds the effects of half and twice the step. Both are nil if there is no step.
type scaledPair struct {
	Half  *scaled `json:"half,omitempty"`
	Twice *scaled `json:"twice,omitempty"`
}

// scaled is the result of a replay with another step.
type scaled struct {
	Precision    string  `json:"precision,omitempty"` // the item of the tag
	BytesPerTick float64 `json:"bytes_per_tick"`      // the change, negative if less is sent
	Share        float64 `json:"share"`               // the change as a share of all bytes sent
	Refused      string  `json:"refused,omitempty"`   // the reason why there was no such replay

	tags retags
}

// advise replays a trace unchanged and then with other steps. The report is that of the first
// replay, except that wrong mirrors of any replay count.
func advise(cfg config, src io.Reader, bar *progressBar) (report, error) {
	data, err := io.ReadAll(src)
	if err != nil {
		return report{}, &fault{file: cfg.name(), reason: "cannot be read: " + err.Error()}
	}
	a := adviser{cfg: cfg, data: data, bar: bar}
	if err := a.plan(); err != nil {
		return report{}, err
	}
	if err := a.replayAll(); err != nil {
		return report{}, err
	}
	return a.base, nil
}

// adviser makes the advice.
type adviser struct {
	cfg    config
	data   []byte // the trace
	bar    *progressBar
	base   report // of the unchanged trace
	advice advice

	moving  map[string]bool // fields that interpolation moves
	halves  retags          // tags with half the step, for all fields that have them
	doubles retags
	jobs    []job
}

// job is a planned replay.
type job struct {
	label string
	out   *scaled
}

// plan reads the trace's header and plans the replays.
func (a *adviser) plan() error {
	trace, release, err := openRows(a.cfg, bytes.NewReader(a.data))
	if err != nil {
		return err
	}
	defer release()
	if _, err := buildSchema(trace.components); err != nil {
		return trace.faultAt(trace.typesLine, err)
	}
	a.halves, a.doubles, a.moving = retags{}, retags{}, map[string]bool{}
	for _, c := range trace.components {
		for i := range c.fields {
			if f := &c.fields[i]; f.tag != "-" {
				a.planField(trace.components, f, f.fullName(c.name))
			}
		}
	}
	if len(a.halves) > 1 || len(a.doubles) > 1 {
		a.advice.All = &scaledPair{planAll(a.halves), planAll(a.doubles)}
		a.addJob("all, half the step", a.advice.All.Half)
		a.addJob("all, twice the step", a.advice.All.Twice)
	}
	a.advice.Replays = 1 + len(a.jobs)
	return nil
}

// addJob adds a replay, if it is possible.
func (a *adviser) addJob(label string, out *scaled) {
	if out.Refused == "" {
		a.jobs = append(a.jobs, job{label, out})
	}
}

func (a *adviser) planField(components []component, f *field, name string) {
	advised := fieldAdvice{Name: name, Precision: f.unscaled()}
	if key, value, ok := f.precision(); ok && !f.stepOfOne() {
		advised.Precision = key + "=" + value
		advised.scaledPair = &scaledPair{
			Half:  planScaled(components, f, name, true),
			Twice: planScaled(components, f, name, false),
		}
		maps.Copy(a.halves, advised.Half.tags)
		maps.Copy(a.doubles, advised.Twice.tags)
		a.addJob(name+", half the step", advised.Half)
		a.addJob(name+", twice the step", advised.Twice)
	}
	if f.moves() {
		a.moving[name] = true
	}
	a.advice.Fields = append(a.advice.Fields, advised)
}

// planScaled finds the tag for half or twice the step. It checks with the library whether such a
// field is valid, because the width of fields is limited, and a float32 has limits of its own.
func planScaled(components []component, f *field, name string, half bool) *scaled {
	tag, item, err := f.scaled(half)
	if err != nil {
		return &scaled{Refused: err.Error()}
	}
	s := &scaled{Precision: item, tags: retags{name: tag}}
	if _, err := buildSchema(s.tags.apply(components)); err != nil {
		s.Refused, s.tags = strings.TrimPrefix(reason(err), name+": "), nil
	}
	return s
}

// planAll combines all such tags. The limits of an entity need no check: codes are never wider than
// their Go types, and these are within the limits.
func planAll(tags retags) *scaled {
	if len(tags) == 0 {
		return &scaled{Refused: "no field can have it"}
	}
	return &scaled{tags: tags}
}

// replayAll runs the planned replays.
func (a *adviser) replayAll() error {
	base, err := a.replay(0, "as it is", nil)
	if err != nil {
		return err
	}
	a.base, a.base.Advice = base, &a.advice
	a.advice.EntitiesSentPerTick, a.advice.bytesPerTick = base.sentPerTick, base.BytesPerTick

	grains := map[string]*grain{}
	if len(a.halves) > 0 {
		if grains, err = measureGrain(a.cfg, bytes.NewReader(a.data), a.halves); err != nil {
			return err
		}
	}
	slow, err := measureSlowness(a.cfg, bytes.NewReader(a.data), a.moving)
	if err != nil {
		return err
	}
	for i := range a.advice.Fields {
		f := &a.advice.Fields[i]
		if s := slow[f.Name]; s != nil && s.share() > slowShare {
			key, value, _ := strings.Cut(f.Precision, "=")
			f.SlowShare, f.Even = s.share(), s.even(key, value)
		}
		f.BitsPerTick = bitsOf(base.Fields, f.Name)
		f.BitsPerUpdate = quotient(f.BitsPerTick, base.sentPerTick)
		f.Share = quotient(f.BitsPerTick/8, base.BytesPerTick)
		f.RecordedFiner = grains[f.Name] != nil && grains[f.Name].finer()
	}
	for i, j := range a.jobs {
		r, err := a.replay(i+1, j.label, j.out.tags)
		if err != nil {
			return err
		}
		j.out.BytesPerTick = r.BytesPerTick - base.BytesPerTick
		j.out.Share = quotient(j.out.BytesPerTick, base.BytesPerTick)
		a.base.blame(j.label, &r)
	}
	return nil
}

// replay replays the trace with other tags.
func (a *adviser) replay(number int, label string, tags retags) (report, error) {
	a.bar.label = fmt.Sprintf("%d/%d %s: ", number+1, a.advice.Replays, label)
	cfg := a.cfg
	cfg.retags = tags
	return run(cfg, bytes.NewReader(a.data), a.bar.tick)
}

// reason returns an error's text without the column that it names.
func reason(err error) string {
	var blamed *columnError
	if errors.As(err, &blamed) {
		return blamed.reason
	}
	return err.Error()
}

// blame adds the failures of another replay.
func (r *report) blame(label string, other *report) {
	r.Converged = r.Converged && other.Converged
	r.Mismatches += other.Mismatches
	for _, text := range other.described {
		r.described = append(r.described, label+": "+text)
	}
}

// indices match those of a field in an array of structs.
var indices = regexp.MustCompile(`\[\d+\]`)

// bitsOf adds up the bits of a field, with the elements of an array, and both codes of a direction.
func bitsOf(fields []fieldReport, name string) float64 {
	sum := 0.0
	for _, f := range fields {
		part, ok := strings.CutPrefix(f.Name, name)
		if !ok {
			part, ok = strings.CutPrefix(indices.ReplaceAllString(f.Name, ""), name)
		}
		if ok && (part == "" || part[0] == '[' || part[0] == '.') {
			sum += f.BitsPerTick
		}
	}
	return sum
}

// quotient returns 0 if nothing was sent.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
