package main

import (
	"fmt"
	"strings"
)

const adviceIntro = `the cost of precision: each row is two replays, with half and twice the step of that field and all
else unchanged; shares and changes are of the %.1f bytes/tick sent to a peer, packet headers
included; %.1f entities are sent per tick
`

const adviceRaw = `raw  every bit of a float is sent: to see what a step would save, write one in the trace's third line
`

const adviceGuess = `~    a guess: the recording does not seem finer than the step, so values replayed with half of it
     were rounded before. The game's own values may cost less or more.
`

// writeTable prints the advice as a table, after the report.
func (a *advice) writeTable(b *strings.Builder) {
	b.WriteByte('\n')
	fmt.Fprintf(b, adviceIntro, a.bytesPerTick, a.EntitiesSentPerTick)

	names, steps := len("all of them"), len("precision")
	guessed, raw := false, false
	for i := range a.Fields {
		f := &a.Fields[i]
		names, steps = max(names, len(f.Name)), max(steps, len(f.Precision))
		guessed = guessed || f.guessed()
		raw = raw || f.Precision == "raw"
	}
	row := func(name, step, bits, update, share, half, twice string) {
		line := fmt.Sprintf("%-*s  %-*s %8s %7s %7s %19s %17s", names, name, steps, step, bits, update, share, half,
			twice)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteByte('\n')
	row("", "", "bits", "bits", "", "half the step", "twice the step")
	row("field", "precision", "a tick", "a send", "share", "bytes/tick", "bytes/tick")
	var refused []string
	for i := range a.Fields {
		f := &a.Fields[i]
		half, twice := "", ""
		if f.scaledPair != nil {
			half, twice = f.Half.text(f.guessed()), f.Twice.text(false)
			refused = append(refused, f.Half.refusal(f.Name, "half")...)
			refused = append(refused, f.Twice.refusal(f.Name, "twice")...)
		}
		row(f.Name, f.Precision, fmt.Sprintf("%.1f", f.BitsPerTick), fmt.Sprintf("%.2f", f.BitsPerUpdate),
			fmt.Sprintf("%.1f %%", f.Share*100), half, twice)
	}
	if a.All != nil {
		refused = append(refused, a.All.Half.refusal("all of them", "half")...)
		refused = append(refused, a.All.Twice.refusal("all of them", "twice")...)
		row("all of them", "", "", "", "", a.All.Half.text(guessed), a.All.Twice.text(false))
	}
	notes := strings.Join(refused, "")
	if raw {
		notes += adviceRaw
	}
	if guessed {
		notes += adviceGuess
	}
	for i := range a.Fields {
		notes += a.Fields[i].slowNote()
	}
	if notes != "" {
		b.WriteString("\n" + notes)
	}
}

// guessed reports whether the replay with half the step used values as coarse as the step.
func (f *fieldAdvice) guessed() bool {
	return f.scaledPair != nil && f.Half.Refused == "" && !f.RecordedFiner
}

// slowNote is a line about a field that is too slow for its step, or empty.
func (f *fieldAdvice) slowNote() string {
	if f.Even == "" {
		return ""
	}
	return fmt.Sprintf("slow %s: less than a step a tick in %.0f %% of its motion, so it stands still and jumps;\n"+
		"     %s shows that evenly\n", f.Name, f.SlowShare*100, f.Even)
}

// text is the cell of a table.
func (s *scaled) text(guess bool) string {
	if s.Refused != "" {
		return "no"
	}
	text := fmt.Sprintf("%+.2f", s.BytesPerTick)
	if guess {
		text = "~ " + text
	}
	return fmt.Sprintf("%s %+6.1f %%", text, s.Share*100)
}

// refusal returns the reason why there was no replay, if there was none.
func (s *scaled) refusal(name, what string) []string {
	if s.Refused == "" {
		return nil
	}
	return []string{fmt.Sprintf("no   %s, %s the step: %s\n", name, what, s.Refused)}
}
