package bitbuf

import "errors"

// Errors that a Writer or a Reader keeps. They are returned as they are, never
// wrapped; [Reader.Pos] is where reading stopped.
var (
	// ErrOverflow: a write did not fit in the Writer's buffer.
	ErrOverflow = errors.New("bitbuf: write does not fit in the buffer")
	// ErrOverrun: a read wanted bits after the end of the Reader's buffer.
	ErrOverrun = errors.New("bitbuf: read past the end of the buffer")
	// ErrPadding: a bit skipped by Align was not zero.
	ErrPadding = errors.New("bitbuf: padding before a byte boundary is not zero")
	// ErrTrailing: Finish found an unread byte, or a bit that is not zero.
	ErrTrailing = errors.New("bitbuf: unread bits after the last value")
	// ErrCode: a code of variable length stood for more than 64 bits, or a Uvarint was longer than its value needs.
	ErrCode = errors.New("bitbuf: code is overlong or exceeds 64 bits")
)

const badOrder = "bitbuf: code order above 63: use an order between 0 and 63"
