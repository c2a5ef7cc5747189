//go:build !js

package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"sync"
	"time"
)

// pinned makes certificates that browsers trust by their hash: it has to be of ECDSA, and valid for at most 14 days.
type pinned struct {
	now func() time.Time

	mu   sync.Mutex // guards what follows
	made time.Time
	cert *tls.Certificate
}

const (
	validFor   = 13 * 24 * time.Hour
	renewAfter = 6 * 24 * time.Hour // pages that know the old hash are connecting
)

// current returns the certificate of new connections.
func (p *pinned) current() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now().Round(0) // the wall clock: the monotonic one stands still while the machine sleeps
	if p.cert != nil && now.Sub(p.made).Abs() < renewAfter {
		return p.cert, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p.cert, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "arche-replicate, self-made"},
		DNSNames:     []string{"localhost"},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.Add(validFor),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return p.cert, err
	}
	p.made, p.cert = now, &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return p.cert, nil
}

// hash returns the SHA-256 of the current certificate.
func (p *pinned) hash() []byte {
	c, _ := p.current() // an error leaves the former one
	sum := sha256.Sum256(c.Certificate[0])
	return sum[:]
}
