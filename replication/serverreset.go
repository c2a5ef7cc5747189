package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/interest"

// What becomes of what the user has told the server of entities when its world is reset: handles begin anew then, and those
// of before may mean others. The entities themselves need no care, since their markers are gone with them.

// noticeReset makes groups, sets and owners forget their entities if the world was reset.
func (s *Server) noticeReset() {
	s.disownGone()
	if s.snap.Mark.Intact() {
		return
	}
	s.snap.Mark.Set()
	for _, g := range s.interest.Groups.List {
		for i := range g.Members {
			g.Part(&g.Members[i], s.snap.Tick+1)
		}
		clear(g.Members)
		g.Members, g.MembersChanged = g.Members[:0], true
	}
	s.interest.Groups.Of = nil
	for _, e := range s.interest.Sets {
		e.Forget()
	}
	for _, p := range s.peers {
		s.interest.DisownAll(&p.sight)
	}
	s.interest.Owners = interest.Ownership{}
	clear(s.snap.Weights)
	s.messages.Messenger.ForgetEntities()
}
