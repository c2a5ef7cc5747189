package recording

import "time"

// A Segment is a part of a recording.
type Segment struct {
	At    time.Duration // since the beginning
	Bytes int64         // of the file
}

// Segments returns the segments of the recording, in their order: what was recorded when, and how much. See
// [WithSegment].
func (p *Player) Segments() []Segment {
	f := p.file
	segments := make([]Segment, len(f.segments))
	end := f.end
	for i := len(segments) - 1; i >= 0; i-- {
		s := f.segments[i]
		segments[i] = Segment{f.head.duration(s.time), end - s.offset}
		end = s.offset
	}
	return segments
}
