// Package predict makes a game feel local: a client simulates what its player does in the frame in which it is done, at
// any round trip, and puts itself right when the server's states show that it was wrong.
//
// Both ends have the same [Model] of the game: a step, which is an ordinary system, and the components that it changes.
// The server's [Host] runs it for the complete world. The client's [Predictor] runs it for what the player controls,
// some ticks ahead of the server, in the client's own world:
//
//	each frame  read the player's input for each new tick
//	            compare the newest states with what was simulated for their ticks
//	            if they differ, go back to there and simulate again, once
//	            simulate the new ticks
//	            draw between the last two ticks; what was corrected fades in smoothly
//
// The server is always right, and knows nothing of all this but the inputs. It reports to the client which of them it
// did not have in time.
package predict
