package wire

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// A disconnect ends a session, in both directions. Behind the checksum:
//
//	kind 8 | code 8 | session 64 | text...
//
// It always has a checksum, also in sessions without. It is sent several times at once,
// since nobody will be there to repeat it. If all copies are lost, a client that keeps
// asking gets another one; otherwise the other end's timeout ends the session a little
// later.
//
// A disconnect may also refuse a hello. Then it has the nonce of the hello instead of the
// session, and the checksum of handshakes.

// DisconnectHead is the size of a disconnect without checksum and text, in bytes.
const DisconnectHead = 1 + 1 + 8

// MaxReasonText is the largest size of the text of a disconnect, in bytes.
const MaxReasonText = 128

// Cut returns as much of a text as fits into a number of bytes, in valid UTF-8.
func Cut(text string, bytes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= bytes {
		return text
	}
	for !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}

// DisconnectPacket returns a disconnect in a packet of at most mtu bytes.
func DisconnectPacket(code uint8, text string, session uint64, key Key, mtu int) []byte {
	key.Off = false
	text = Cut(text, min(MaxReasonText, mtu-ChecksumSize-DisconnectHead))
	packet := make([]byte, ChecksumSize, ChecksumSize+DisconnectHead+len(text))
	packet = append(packet, byte(KindDisconnect), code)
	packet = binary.LittleEndian.AppendUint64(packet, session)
	packet = append(packet, text...)
	key.Write(packet, 0, 0)
	return packet
}

// MaybeDisconnect reports whether a packet can be a disconnect, by its length and kind.
func MaybeDisconnect(packet []byte) bool {
	const head = ChecksumSize + DisconnectHead
	return head <= len(packet) && len(packet) <= head+MaxReasonText &&
		PacketKind(packet[ChecksumSize]) == KindDisconnect
}

// ReadDisconnect returns the content of the body of a disconnect, and whether it is one. session is the
// number of the session that ends, or the nonce of the hello that is refused.
func ReadDisconnect(body []byte) (code uint8, session uint64, text string, ok bool) {
	if len(body) < DisconnectHead || len(body) > DisconnectHead+MaxReasonText ||
		PacketKind(body[0]) != KindDisconnect {
		return 0, 0, "", false
	}
	rest := body[DisconnectHead:]
	return body[1], binary.LittleEndian.Uint64(body[2:]), string(rest), utf8.Valid(rest)
}

// ParseDisconnect returns the content of a disconnect of a session, and whether the packet is one.
func ParseDisconnect(packet []byte, session uint64, key Key) (code uint8, text string, ok bool) {
	key.Off = false
	if !MaybeDisconnect(packet) || binary.LittleEndian.Uint64(packet[ChecksumSize+2:]) != session ||
		!key.Matches(packet, 0, 0) {
		return 0, "", false
	}
	code, _, text, ok = ReadDisconnect(packet[ChecksumSize:])
	return code, text, ok
}
