package quic

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	quicgo "github.com/quic-go/quic-go"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
)

// certify writes a certificate of an authority for a name, and returns the files and the authority.
func certify(t *testing.T, dir, name string) (certFile, keyFile string, roots *x509.CertPool) {
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		return k
	}
	from, until := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: from, NotAfter: until}
	signer, own := key(), key()
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &signer.PublicKey, signer)
	require.NoError(t, err)
	root, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots = x509.NewCertPool()
	roots.AddCert(root)
	der, err = x509.CreateCertificate(rand.Reader, leaf, root, &own.PublicKey, signer)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return certFile, keyFile, roots
}

// ends returns what Frame returns in the end.
func ends(t *testing.T, h *host, p *player) string {
	until(t, h, func() bool { return p.err != nil }, p)
	return p.err.Error()
}

// reports plays until Client.Err has the words.
func reports(t *testing.T, h *host, p *player, words string) {
	until(t, h, func() bool {
		require.NoError(t, p.err)
		return p.client.Err() != nil && strings.Contains(p.client.Err().Error(), words)
	}, p)
	t.Log(p.client.Err())
}

func TestCertificatesOfAnAuthority(t *testing.T) {
	cert, key, roots := certify(t, t.TempDir(), "localhost")
	h := serve(t, "127.0.0.1:0", WithCertificate(cert, key))
	port := h.listener.Addr().String()[len("127.0.0.1"):]
	p := dial(t, "localhost"+port, WithRoots(roots))
	until(t, h, p.connected, p)

	why := ends(t, h, dial(t, "127.0.0.1"+port, WithRoots(roots)))
	t.Log(why)
	require.Contains(t, why, "certificate of 127.0.0.1"+port+" is not trusted")
	require.Contains(t, why, "for 127.0.0.1")

	why = ends(t, h, dial(t, "localhost"+port, WithRoots(x509.NewCertPool())))
	t.Log(why)
	require.Contains(t, why, "signed by unknown authority")
	require.Contains(t, why, "if Listener.Fingerprint returns "+h.listener.Fingerprint()+" at the server")
	require.Contains(t, why, "WithFingerprint")
	require.Contains(t, why, "WithRoots")

	loaded, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	other := serve(t, "127.0.0.1:0", WithTLS(&tls.Config{Certificates: []tls.Certificate{loaded}}))
	require.Equal(t, h.listener.Fingerprint(), other.listener.Fingerprint())
	q := dial(t, "localhost"+other.listener.Addr().String()[len("127.0.0.1"):], WithRoots(roots))
	until(t, other, q.connected, q)
	byName := serve(t, "127.0.0.1:0", WithTLS(&tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &loaded, nil },
	}))
	require.Empty(t, byName.listener.Fingerprint())
}

// The system's authorities, for an address that is not of this machine: nothing is trusted that they don't know.
func TestWhatIsTrusted(t *testing.T) {
	o := settings("game.example:9000", nil)
	c := o.trust("game.example", false)
	require.False(t, c.InsecureSkipVerify)
	require.Equal(t, "game.example", c.ServerName)
	require.Nil(t, c.RootCAs)
	require.True(t, o.trust("localhost", true).InsecureSkipVerify)
	o = settings("localhost:9000", []Option{WithRoots(x509.NewCertPool())})
	require.False(t, o.trust("localhost", true).InsecureSkipVerify)
}

func TestFingerprints(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	hash := h.listener.Fingerprint()
	require.Len(t, hash, 64)
	var pairs []string
	for i := 0; i < 64; i += 2 {
		pairs = append(pairs, strings.ToUpper(hash[i:i+2]))
	}
	p := dial(t, h.listener.Addr().String(), WithFingerprint(strings.Join(pairs, ":")))
	until(t, h, p.connected, p)

	other := strings.Repeat("ab", 32)
	why := ends(t, h, dial(t, h.listener.Addr().String(), WithFingerprint(other)))
	t.Log(why)
	require.Contains(t, why, "has the fingerprint "+hash+", and WithFingerprint wants "+other)

	for _, wrong := range []string{"", "ab", other + "ab", strings.Repeat("xy", 32)} {
		_, err := Dial("127.0.0.1:9", p.client, WithFingerprint(wrong))
		require.ErrorContains(t, err, "64 hexadecimal digits: Listener.Fingerprint returns it")
	}
}

func TestTheCertificateIsRenewed(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	clock := func(o *options) { o.now = func() time.Time { return now } }
	cert, key, _ := certify(t, dir, "localhost")
	h := serve(t, "127.0.0.1:0", clock, WithCertificate(cert, key))
	first := h.listener.Fingerprint()
	certify(t, dir, "localhost")
	now = now.Add(59 * time.Second)
	require.Equal(t, first, h.listener.Fingerprint())
	now = now.Add(2 * time.Second)
	second := h.listener.Fingerprint()
	require.NotEqual(t, first, second)
	p := dial(t, h.listener.Addr().String(), WithFingerprint(second))
	until(t, h, p.connected, p)
	require.NoError(t, os.WriteFile(key, nil, 0o600))
	now = now.Add(2 * time.Minute)
	require.Equal(t, second, h.listener.Fingerprint())
	require.EqualValues(t, 1, h.listener.Stats().CertificateErrors)
}

func TestAKeptCertificate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "server.pem")
	a := serve(t, "127.0.0.1:0", WithSelfSigned(file)).listener.Fingerprint()
	require.Equal(t, a, serve(t, "127.0.0.1:0", WithSelfSigned(file)).listener.Fingerprint())
	require.NotEqual(t, a, serve(t, "127.0.0.1:0").listener.Fingerprint())
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.NoError(t, write(file, []byte("another server's, at the same time")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, a, serve(t, "127.0.0.1:0", WithSelfSigned(file)).listener.Fingerprint())
	require.NoError(t, os.WriteFile(file, []byte("something else"), 0o600))
	_, err = Listen("127.0.0.1:0", newHost().server, WithSelfSigned(file))
	require.ErrorContains(t, err, "is not a file that WithSelfSigned has made")
	_, err = Listen("127.0.0.1:0", newHost().server, WithSelfSigned(filepath.Join(dir, "no", "server.pem")))
	require.ErrorContains(t, err, "WithSelfSigned: ")
}

func TestListenErrors(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := certify(t, dir, "localhost")
	h := serve(t, "127.0.0.1:0", WithCertificate(cert, key))
	for want, try := range map[string]func() (*Listener, error){
		"in use":         func() (*Listener, error) { return Listen(h.listener.Addr().String(), h.server) },
		"missing port":   func() (*Listener, error) { return Listen("127.0.0.1", h.server) },
		"no certificate": func() (*Listener, error) { return Listen("127.0.0.1:0", h.server, WithTLS(&tls.Config{})) },
		"WithCertificate: a file is missing: open " + dir + "/none.pem": func() (*Listener, error) {
			return Listen("127.0.0.1:0", h.server, WithCertificate(dir+"/none.pem", key))
		},
		"does not match public key": func() (*Listener, error) {
			other, _, _ := certify(t, t.TempDir(), "localhost")
			return Listen("127.0.0.1:0", h.server, WithCertificate(other, key))
		},
		"can't be used": func() (*Listener, error) { return Listen("127.0.0.1:0", h.server, WithCertificate(key, cert)) },
	} {
		_, err := try()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "quic: ")
	}
}

func TestDialErrors(t *testing.T) {
	p := dial(t, "127.0.0.1:9")
	for _, address := range []string{"", "127.0.0.1", ":9000", "localhost:", "localhost:0", "localhost:70000", "localhost:http", "::1:9"} {
		_, err := Dial(address, p.client)
		require.ErrorContains(t, err, "give a host and a port", address)
	}
}

func TestNobodyIsThere(t *testing.T) {
	nobody, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer func() { _ = nobody.Close() }()
	p := dial(t, nobody.LocalAddr().String(), func(o *options) { o.handshake = 300 * time.Millisecond })
	until(t, nil, func() bool { p.frame(); return p.client.Err() != nil }, p)
	require.ErrorContains(t, p.client.Err(), "no answer from "+nobody.LocalAddr().String()+" yet")
	reports(t, nil, p, "no answer from "+nobody.LocalAddr().String()+": is the server running")
}

// TestAnotherServer: QUIC for something else is behind the port.
func TestAnotherServer(t *testing.T) {
	made, err := selfSigned(time.Now())
	require.NoError(t, err)
	config := made.config()
	config.NextProtos = []string{"h3"}
	other, err := quicgo.ListenAddr("127.0.0.1:0", config, nil)
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	why := ends(t, nil, dial(t, other.Addr().String()))
	require.Contains(t, why, "is a QUIC server for something else: is the port right?")
}

// TestWithoutDatagrams: ends that would carry no packets.
func TestWithoutDatagrams(t *testing.T) {
	made, err := selfSigned(time.Now())
	require.NoError(t, err)
	config := made.config()
	config.NextProtos = []string{protocol}
	other, err := quicgo.ListenAddr("127.0.0.1:0", config, nil)
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	require.Contains(t, ends(t, nil, dial(t, other.Addr().String())), "takes no QUIC datagrams")

	h := serve(t, "127.0.0.1:0")
	o := settings(h.listener.Addr().String(), nil)
	conn, err := quicgo.DialAddr(t.Context(), h.listener.Addr().String(), o.trust("", true), nil)
	require.NoError(t, err)
	<-conn.Context().Done()
	require.Contains(t, conn.Context().Err().Error(), "canceled")
	require.EqualValues(t, 1, h.listener.Stats().NoDatagrams)
}

func TestTheServerIsFull(t *testing.T) {
	h := serve(t, "127.0.0.1:0", WithLimits(transport.Limits{Peers: 1}))
	p := dial(t, h.listener.Addr().String())
	until(t, h, p.connected, p)
	q := dial(t, h.listener.Addr().String())
	until(t, h, func() bool {
		return q.client.Err() != nil && strings.Contains(q.client.Err().Error(), "the server is full")
	}, p, q)
	require.NoError(t, p.conn.Close())
	until(t, h, q.connected, q)

	h = serve(t, "127.0.0.1:0", WithLimits(transport.Limits{PeersPerIP: 1}))
	p = dial(t, h.listener.Addr().String())
	until(t, h, p.connected, p)
	q = dial(t, h.listener.Addr().String())
	until(t, h, func() bool {
		return q.client.Err() != nil && strings.Contains(q.client.Err().Error(), "too many clients of this address")
	}, p, q)
	require.Positive(t, h.listener.Stats().FullIP)
}

// TestLargePackets: those of 1,200 bytes fit from the beginning, others are refused with a sentence.
func TestLargePackets(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	got := 0
	replication.OnClientMessage(h.server, func(*replication.Peer, noise) { got++ })
	p := dial(t, h.listener.Addr().String())
	until(t, h, p.connected, p)
	for range 10 {
		require.NoError(t, replication.SendToServer(p.client, noise{strings.Repeat("x", 4000)}))
	}
	until(t, h, func() bool { return got == 10 }, p)
	require.Zero(t, p.conn.Stats().Failures)

	world := ecs.NewWorld()
	q := dialFor(t, replication.NewClient(&world, schema(), replication.WithMTU(4000)), h.listener.Addr().String())
	until(t, h, q.connected, q)
	require.NoError(t, replication.SendToServer(q.client, noise{strings.Repeat("x", 2000)}))
	until(t, h, func() bool {
		err := q.client.Stats().LastSendError
		return err != nil && strings.HasSuffix(err.Error(), "and the connection carries 1200: give NewClient replication.WithMTU(1200)")
	}, q)
	require.EqualValues(t, 1, q.conn.Stats().Dials)
}

// TestThePeersMTU: what the server's is, if it is less.
func TestThePeersMTU(t *testing.T) {
	for _, of := range []int{300, 1200, 9000} {
		h := newHost(replication.WithMTU(of))
		h.listen(t, "127.0.0.1:0")
		p := dial(t, h.listener.Addr().String())
		got := 0
		replication.OnServerMessage(p.client, func(noise) { got++ })
		until(t, h, p.advances(30), p)
		for peer := range h.server.Peers() {
			for range 10 {
				require.NoError(t, replication.SendToClient(peer, noise{strings.Repeat("x", 4000)}))
			}
		}
		until(t, h, func() bool { return got == 10 }, p)
		require.Zero(t, p.conn.Stats().Failures)
		require.EqualValues(t, 1, p.conn.Stats().Dials)
	}
}

func TestHandshakesAreBounded(t *testing.T) {
	h := serve(t, "127.0.0.1:0", WithLimits(transport.Limits{PeersPerIP: 2}))
	end, ok := h.listener.hub.Begin(h.listener.Addr())
	require.True(t, ok)
	again, ok := h.listener.hub.Begin(h.listener.Addr())
	require.True(t, ok)
	p := dial(t, h.listener.Addr().String())
	reports(t, h, p, "refuses connections now")
	require.Positive(t, h.listener.Stats().Refused)
	end()
	again()
	until(t, h, p.connected, p)
	again, ok = h.listener.hub.Begin(h.listener.Addr())
	require.True(t, ok, "nothing is counted that is over")
	again()
}

func TestMisuse(t *testing.T) {
	h := newHost()
	p := dial(t, "127.0.0.1:9")
	require.Panics(t, func() { _, _ = Listen("127.0.0.1:0", nil) })
	require.Panics(t, func() { _, _ = Dial("127.0.0.1:9", nil) })
	require.Panics(t, func() { _, _ = Listen("127.0.0.1:0", h.server, nil) })
	require.Panics(t, func() { WithNetwork(nil) })
	require.Panics(t, func() { WithTLS(nil) })
	require.Panics(t, func() { WithRoots(nil) })
	require.PanicsWithValue(t, "quic: Dial: WithCertificate is an option of Listen: leave it out", func() {
		_, _ = Dial("127.0.0.1:9", p.client, WithCertificate("", ""))
	})
	require.PanicsWithValue(t, "quic: Listen: WithFingerprint is an option of Dial: leave it out", func() {
		_, _ = Listen("127.0.0.1:0", h.server, WithFingerprint(""))
	})
	require.PanicsWithValue(t, "quic: WithTLS and WithSelfSigned exclude each other: leave one out", func() {
		_, _ = Listen("127.0.0.1:0", h.server, WithTLS(&tls.Config{}), WithSelfSigned("x"))
	})
}

// TestStrangersProveTheirAddress: the server answers a first datagram with a Retry that is smaller, and keeps nothing.
func TestStrangersProveTheirAddress(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	stranger, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer func() { _ = stranger.Close() }()
	dial(t, stranger.LocalAddr().String()).frame() // a client's first datagram comes here
	require.NoError(t, stranger.SetDeadline(time.Now().Add(10*time.Second)))
	first, answer := make([]byte, 2000), make([]byte, 2000)
	n, _, err := stranger.ReadFromUDPAddrPort(first)
	require.NoError(t, err)
	_, err = stranger.WriteToUDPAddrPort(first[:n], h.listener.Addr())
	require.NoError(t, err)
	got, from, err := stranger.ReadFromUDPAddrPort(answer)
	for err == nil && from != h.listener.Addr() { // the client repeats itself
		got, from, err = stranger.ReadFromUDPAddrPort(answer)
	}
	require.NoError(t, err)
	require.EqualValues(t, 0xf0, answer[0]&0xf0, "a long header of type Retry")
	require.Less(t, got, n)
	require.Zero(t, h.listener.Stats().Opened)
}
