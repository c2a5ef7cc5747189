package main

import (
	"context"
	"errors"
)

var errNoPage = errors.New("this build serves no page: give -http=")

// page is for machines that serve one.
type page struct{}

func (r *replay) page(context.Context, *config, *screen) error { return errNoPage }

func (m *match) openPage(context.Context, *screen) error {
	return errNoPage
}

func (p *page) tend(*match, *screen) {}
func (p *page) show(*match)          {}
