package quic

import (
	"crypto/tls"
	"errors"
	"fmt"

	quicgo "github.com/quic-go/quic-go"

	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

var errNoDatagrams = errors.New("the server takes no QUIC datagrams: is it one of package quic?")

// noProtocol is the error of an end whose TLS finds no protocol in common: CRYPTO_ERROR with the alert
// no_application_protocol.
const noProtocol quicgo.TransportErrorCode = 0x100 + 120

// explain makes a sentence of an error of a client's connection, with what to do. Where waiting does not mend it,
// it is final.
func explain(err error, where string) error {
	var (
		wrong     *fingerprintError
		untrusted *tls.CertificateVerificationError
		transport *quicgo.TransportError
		app       *quicgo.ApplicationError
		version   *quicgo.VersionNegotiationError
		handshake *quicgo.HandshakeTimeoutError
		idle      *quicgo.IdleTimeoutError
		large     *quicgo.DatagramTooLargeError
	)
	switch {
	case errors.As(err, &wrong):
		return link.Final(fmt.Errorf("%s: %w", where, wrong))
	case errors.As(err, &untrusted):
		return link.Final(fmt.Errorf("the certificate of %s is not trusted: %w: if Listener.Fingerprint returns %s "+
			"at the server, give Dial that WithFingerprint, or the authority WithRoots",
			where, untrusted.Err, fingerprint(untrusted.UnverifiedCertificates[0].Raw)))
	case errors.As(err, &transport) && transport.ErrorCode == noProtocol:
		return link.Final(fmt.Errorf("at %s is a QUIC server for something else: is the port right?", where))
	case errors.As(err, &transport) && transport.ErrorCode == quicgo.ConnectionRefused:
		return fmt.Errorf("%s refuses connections now: too many clients connect at a time, or it is closing", where)
	case errors.As(err, &version):
		return link.Final(fmt.Errorf("%s has another version of QUIC: %w", where, err))
	case errors.As(err, &app) && app.Remote:
		return refusal(app)
	case errors.As(err, &handshake), errors.As(err, &idle):
		return fmt.Errorf("no answer from %s: is the server running, does it use package quic, "+
			"and do firewalls let UDP through?", where)
	case errors.As(err, &large):
		return fmt.Errorf("%s takes datagrams of at most %d bytes, too few for packets",
			where, large.MaxDatagramPayloadSize)
	}
	return err
}

// refusal is the error of a connection that the server has closed.
func refusal(app *quicgo.ApplicationError) error {
	switch app.ErrorCode {
	case codeFull:
		return link.ErrFull
	case codeFullIP:
		return link.ErrFullIP
	case codeShut:
		return link.ErrShut
	case codeClosed:
		return errors.New("the server has closed the connection")
	}
	return fmt.Errorf("the server has closed the connection: %q", app.ErrorMessage)
}
