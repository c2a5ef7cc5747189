package main

import (
	"context"
	"errors"
)

// page is for machines that serve one.
type page struct{}

func (m *match) openPage(context.Context, *screen) error {
	return errors.New("this build serves no page: give -http=")
}

func (p *page) tend(*match, *screen) {}
func (p *page) show(*match)          {}
