// Package recording keeps what a server sends or a client receives in a file, and plays it into a world again.
//
//	recorder := recording.NewRecorder(server, file) // records every Replicate from now on
//	...
//	err := recorder.Close()
//
//	player, err := recording.NewPlayer(&world, schema, file, size)
//	err = player.Seek(3*time.Minute + 12*time.Second)
//	err = player.Frame(dt) // once per frame, in place of Client.Frame
//
// # Data flow
//
// A Recorder is a peer of the server without a client: the packets of a tick count as received at once. Each tick's go
// into a row, rows into a bounded queue, and a goroutine writes the queue to an [io.Writer]. Every second the peer is
// replaced by a new one, which is sent everything: a segment begins. In that tick both are sent its state. A full
// queue drops what comes until it is half empty; then a new segment begins. A Player feeds the packets of rows to a
// client. Where segments meet, the client takes the new one's first row for a repetition of the state that it has, so
// nothing changes in its world, and interpolation goes on.
//
// # Format
//
// Integers are unsigned LEB128 ("varint") unless a size is given; those with a size are little-endian. A
// text is its length and its bytes.
//
//	file    = "ARCHEREC" version:8 record(header) {part} [record(index) trailer]
//	part    = record(segment) {record(row) | record(mark)}
//	record  = kind:8 length body check:32    check: CRC-32C of all bytes of the segment up to here, without checks;
//	                                         header and index count as segments of their own
//	header  = protocol:8 source:8 rate schema-text count {key value}    source: 0 server, 1 client (rate 0)
//	segment = time welcome    the time of its first row; an empty welcome continues the session of the segment before
//	row     = step {length packet}    step: since the row before; 0 in the first row of a server's segment
//	mark    = text            at the time of the row before
//	index   = offset time count {offset time} count {time text}    where it is itself, the length of the recording;
//	                                         segments and marks, as differences to the ones before
//	trailer = size:32 "ARCHEEND"    the size of the index record
//
// Times are ticks in a recording of a server, and nanoseconds in one of a client. A row is complete with its check, so
// a file that was cut off plays up to its last complete row.
package recording
