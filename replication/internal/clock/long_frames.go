package clock

// LongFrames knows whether long frames are usual for a client: then it is slow, and plans them. Otherwise a long frame
// is a hitch, and what arrived in it has waited for the client. A game that loads has some, too. Frames count by the
// time that they take, but a long one only as much as the longest that is not.
type LongFrames struct {
	more float64 // by how much more the latest frames were long than not; a long one counts 1, others their share
}

const (
	// fewFrames is how many long frames do not mean that most are.
	fewFrames = 4
	// lately bounds how much counts: a game may become slow for good.
	lately = 60
)

// Note counts a frame. share is its length, divided by that of the longest frame that is not long.
func (l *LongFrames) Note(share float64) {
	if share > 1 {
		l.more = min(l.more+1, lately)
	} else {
		l.more = max(l.more-share, -lately)
	}
}

// Usual reports whether long frames are usual.
func (l *LongFrames) Usual() bool { return l.more > fewFrames }
