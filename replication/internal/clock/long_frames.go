package clock

// LongFrames knows whether most frames of a client are long. Then the client is slow, and plans them. Otherwise a long
// frame is a hitch, and what arrived in it has waited for the client. A game that loads has some, too.
type LongFrames struct {
	more int // by how many more of the latest frames were long than were not
}

const (
	// fewFrames is how many long frames do not mean that most are.
	fewFrames = 4
	// lately bounds how many frames count: a game may become slow for good.
	lately = 60
)

// Note counts a frame.
func (l *LongFrames) Note(long bool) {
	if long {
		l.more = min(l.more+1, lately)
	} else {
		l.more = max(l.more-1, -lately)
	}
}

// Usual reports whether most frames are long.
func (l *LongFrames) Usual() bool { return l.more > fewFrames }
