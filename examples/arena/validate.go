package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"
)

// withoutPage are the flags with which no page is served.
var withoutPage = []string{"headless", "json", "serve", "connect", "load", "clients", "transport"}

// withReplay are the flags that a replay has; all else is in the recording.
var withReplay = []string{"replay", "http", "open", "headless", "json"}

// validateFiles returns an error if the files of recordings and other flags make no sense together.
func (c *config) validateFiles(given map[string]bool) error {
	for name, path := range map[string]string{"record": c.record, "replay": c.replay} {
		if given[name] && path == "" {
			return fmt.Errorf("-%s needs the name of a file", name)
		}
	}
	if c.record != "" && c.connect != "" {
		return errors.New("-record records a server, and -connect is for its clients: give it to that of -serve")
	}
	if c.replay == "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(withReplay, name) {
			return fmt.Errorf("-replay plays what was recorded, where -%s changes nothing: leave it out", name)
		}
	}
	return nil
}

// validate returns an error for the first invalid flag.
func (c *config) validate(given map[string]bool) error {
	if err := c.validateFiles(given); err != nil {
		return err
	}
	switch {
	case given["ticks"] && given["duration"]:
		return errors.New("-ticks and -duration both set the length of the fight: give one of them")
	case given["ticks"] && c.ticks < 1:
		return fmt.Errorf("-ticks is %d but must be at least 1", c.ticks)
	case c.duration <= 0 || c.duration > 24*time.Hour:
		return fmt.Errorf("-duration is %v but must be more than 0 and at most 24h", c.duration)
	}
	for _, of := range []struct {
		name        string
		value, most int
	}{
		{"bots", c.bots, maxBots},
		{"clients", c.clients, maxClients},
		{"load", c.load, maxClients},
		{"tick-rate", c.tickRate, maxTickRate},
	} {
		if of.value > of.most || of.value < 1 && (of.name != "load" || given["load"]) {
			return fmt.Errorf("-%s is %d but must be from 1 to %d", of.name, of.value, of.most)
		}
	}
	switch {
	case c.sendRate < 1 || c.tickRate%c.sendRate != 0:
		return fmt.Errorf("-send-rate is %d but must divide -tick-rate, which is %d", c.sendRate, c.tickRate)
	case c.tickRate/c.sendRate > maxSendStep:
		return fmt.Errorf("-send-rate is %d but must be at least a %dth of -tick-rate, which is %d", c.sendRate,
			maxSendStep, c.tickRate)
	case c.transport != "memory" && c.transport != "udp":
		return fmt.Errorf("-transport is %q but must be memory or udp", c.transport)
	case c.serve != "" && c.connect != "":
		return errors.New("-serve and -connect are two processes: give one of them to each")
	case c.load > 0 && c.connect == "":
		return errors.New("-load needs a server in another process: give its address by -connect")
	case c.wait <= 0:
		return fmt.Errorf("-wait is %v but must be more than 0", c.wait)
	}
	return c.validateLink(given)
}

// validateLink is the part of validate about addresses and the network.
func (c *config) validateLink(given map[string]bool) error {
	if err := c.validateAddresses(given); err != nil {
		return err
	}
	for _, share := range []struct {
		name  string
		value float64
	}{{"loss", c.loss}, {"dup", c.dup}, {"reorder", c.reorder}} {
		if !(share.value >= 0 && share.value <= 1) { // not for NaN either
			return fmt.Errorf("-%s is %v but must be from 0 to 1", share.name, share.value)
		}
	}
	for _, delay := range []struct {
		name  string
		value time.Duration
	}{{"latency", c.latency}, {"jitter", c.jitter}} {
		if delay.value < 0 || delay.value > maxDelay {
			return fmt.Errorf("-%s is %v but must be from 0 to %v", delay.name, delay.value, maxDelay)
		}
	}
	return nil
}

// validateAddresses returns an error for the first address that is none, or that another flag forbids.
func (c *config) validateAddresses(given map[string]bool) error {
	for _, without := range withoutPage {
		if given[without] && given["http"] && c.http != "" {
			return fmt.Errorf("-http serves a page, and -%s does something else: give one of them", without)
		}
	}
	for _, address := range []struct{ name, value string }{
		{"serve", c.serve}, {"connect", c.connect}, {"http", c.http},
	} {
		if address.name == "http" && address.value == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(address.value); err != nil && given[address.name] {
			return fmt.Errorf("-%s is %q but must be an address with a port, like 127.0.0.1:9000", address.name,
				address.value)
		}
	}
	return nil
}
