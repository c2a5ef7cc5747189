package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport/web"
)

func listenWebSocket(s *replication.Server) (*listener, error) {
	h := web.NewHandler(s, web.WithLimits(limits))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	site := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = site.Serve(tcp) }() // ends when it is closed
	return &listener{tcp.Addr().String(), h.Poll, func() error {
		err := h.Close()
		_ = site.Close() // the handler has closed all that are of interest
		return err
	}}, nil
}

func dialWebSocket(address string, c *replication.Client) (end, error) {
	return web.Dial("http://"+address+"/play", c)
}

// relayConnections carries the connections of one client.
func relayConnections(c *counter, to string) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	c.closers = append(c.closers, l.Close)
	carry := func(from, by net.Conn) {
		defer func() { _ = by.Close() }()
		buf := make([]byte, 1<<16)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			c.bytes.Add(uint64(n))
			if _, err := by.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	c.work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			c.work.Go(func() { carry(client, server) })
			c.work.Go(func() { carry(server, client) })
		}
	})
	return l.Addr().String(), nil
}

func listenWebTransport(s *replication.Server) (*listener, error) {
	h := web.NewHandler(s, web.WithLimits(limits))
	if err := h.WebTransport("127.0.0.1:0", nil); err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/play?info", nil))
	var info struct{ Port int }
	if err := json.Unmarshal(answer.Body.Bytes(), &info); err != nil {
		return nil, err
	}
	return &listener{fmt.Sprint("127.0.0.1:", info.Port), h.Poll, h.Close}, nil
}

// A session is a client as in browsers, with WebTransport.
type session struct {
	client  *replication.Client
	inbox   chan []byte
	stop    context.CancelFunc
	work    sync.WaitGroup
	mu      sync.Mutex // guards what follows
	session *webtransport.Session
}

func dialWebTransport(address string, c *replication.Client) (end, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &session{client: c, inbox: make(chan []byte, 256), stop: stop}
	c.SetSend(s.send)
	s.work.Go(func() {
		d := &webtransport.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}, //nolint:gosec // on loopback
			QUICConfig: &quic.Config{
				EnableDatagrams: true, EnableStreamResetPartialDelivery: true, InitialPacketSize: 1252,
			},
		}
		var opened *webtransport.Session
		for opened == nil {
			var err error
			if _, opened, err = d.Dial(ctx, "https://"+address+"/play", nil); ctx.Err() != nil {
				return
			}
			if err != nil { // the server is busy with others
				opened = nil
				time.Sleep(250 * time.Millisecond)
			}
		}
		s.mu.Lock()
		s.session = opened
		s.mu.Unlock()
		for {
			packet, err := opened.ReceiveDatagram(ctx)
			if err != nil {
				_ = opened.CloseWithError(0, "") // the measurement is over
				return
			}
			select {
			case s.inbox <- packet:
			default: // dropped, like everywhere
			}
		}
	})
	return s, nil
}

func (s *session) send(packet []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return net.ErrClosed
	}
	return s.session.SendDatagram(packet)
}

func (s *session) Poll() {
	for {
		select {
		case packet := <-s.inbox:
			_ = s.client.Receive(packet) // counted in Client.Stats
		default:
			return
		}
	}
}

func (s *session) Close() error {
	s.stop()
	s.work.Wait()
	return nil
}
