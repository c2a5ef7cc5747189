package quic

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A source has the certificate of a server.
type source interface {
	config() *tls.Config
	// current returns the certificate of new connections; nil if it depends on the connection.
	current() *tls.Certificate
	errors() uint64 // of renewals
}

// fixed is a certificate that stays the same.
type fixed struct{ tls *tls.Config }

func (f fixed) config() *tls.Config { return f.tls }
func (f fixed) errors() uint64      { return 0 }

func (f fixed) current() *tls.Certificate {
	if len(f.tls.Certificates) == 0 {
		return nil
	}
	return &f.tls.Certificates[0]
}

func fixedTo(c tls.Certificate) fixed { return fixed{&tls.Config{Certificates: []tls.Certificate{c}}} }

func fromConfig(c *tls.Config) (source, error) {
	if len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		return nil, errors.New("WithTLS: the tls.Config has no certificate: set Certificates or GetCertificate")
	}
	return fixed{c.Clone()}, nil
}

// files is a certificate in files that may be renewed.
type files struct {
	cert, key string
	now       func() time.Time

	mu     sync.Mutex // guards what follows
	loaded *tls.Certificate
	looked time.Time
	failed uint64
}

// renewal is the time between two looks at the files.
const renewal = time.Minute

func newFiles(cert, key string, now func() time.Time) (source, error) {
	f := &files{cert: cert, key: key, now: now, looked: now()}
	var err error
	f.loaded, err = f.load()
	return f, err
}

func (f *files) load() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(f.cert, f.key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("WithCertificate: a file is missing: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("WithCertificate: the certificate in %q can't be used with the key in %q: %w",
			f.cert, f.key, err)
	}
	return &c, nil
}

func (f *files) config() *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current(), nil }}
}

func (f *files) current() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if now.Sub(f.looked) < renewal {
		return f.loaded
	}
	f.looked = now
	if c, err := f.load(); err == nil {
		f.loaded = c
	} else {
		f.failed++ // perhaps only one of the two is written yet
	}
	return f.loaded
}

func (f *files) errors() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func selfSigned(now time.Time) (source, error) {
	c, _, err := makeCertificate(now)
	return fixedTo(c), err
}

// keptCertificate reads a self-made certificate from a file, or makes it.
func keptCertificate(file string, now time.Time) (source, error) {
	kept, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		_, kept, err = makeCertificate(now)
		if err == nil {
			err = write(file, kept)
		}
		if err == nil {
			kept, err = os.ReadFile(file) // another server may have made one at the same time
		}
	}
	if err != nil {
		return nil, fmt.Errorf("WithSelfSigned: %w", err)
	}
	c, err := tls.X509KeyPair(kept, kept)
	if err != nil {
		return nil, fmt.Errorf("WithSelfSigned: %q is not a file that WithSelfSigned has made: %w", file, err)
	}
	return fixedTo(c), nil
}

// write makes a file at once or not at all, and leaves one that exists as it is.
func write(file string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // for the owner only
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), file); errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil { // no links in this file system
		return os.Rename(f.Name(), file)
	}
	return nil
}

// makeCertificate returns a certificate, and the same in PEM with its key.
func makeCertificate(now time.Time) (c tls.Certificate, both []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "arche-replicate, self-made"},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:    now.Add(-24 * time.Hour), // clocks differ
		NotAfter:     now.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return c, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return c, nil, err
	}
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // a buffer takes all
	_ = pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	c, err = tls.X509KeyPair(b.Bytes(), b.Bytes())
	return c, b.Bytes(), err
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// normal returns a fingerprint as Listener.Fingerprint writes it; other programs write capital letters and colons.
func normal(s string) (string, error) {
	n := strings.ToLower(strings.NewReplacer(":", "", " ", "").Replace(strings.TrimSpace(s)))
	if b, err := hex.DecodeString(n); err != nil || len(b) != sha256.Size {
		return "", fmt.Errorf("WithFingerprint: %q is not the SHA-256 of a certificate in 64 hexadecimal digits: "+
			"Listener.Fingerprint returns it at the server", s)
	}
	return n, nil
}

// A fingerprintError reports a server with another certificate than the one that WithFingerprint names.
type fingerprintError struct{ want, got string }

func (e *fingerprintError) Error() string {
	return fmt.Sprintf("the server's certificate has the fingerprint %s, and WithFingerprint wants %s: "+
		"this is another server, or it has a new certificate: give what Listener.Fingerprint returns there",
		e.got, e.want)
}

// trust returns how a client checks the certificate of a server.
func (o *options) trust(host string, loopback bool) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{protocol},
		ServerName: host,
		RootCAs:    o.roots,
		Time:       o.now,
	}
	switch {
	case o.fingerprint != "":
		c.InsecureSkipVerify = true //nolint:gosec // the certificate is known
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if got := fingerprint(s.PeerCertificates[0].Raw); got != o.fingerprint {
				return &fingerprintError{o.fingerprint, got}
			}
			return nil
		}
	case loopback && o.roots == nil:
		c.InsecureSkipVerify = true //nolint:gosec // nobody is in between
	}
	return c
}
