package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chromedp/chromedp"
)

// A film is an animation of the page, for -shots. Without that it has no pictures.
type film struct {
	tab     *tab
	movie   gif.GIF
	before  *image.Paletted // the picture so far
	taken   time.Time
	colours map[color.RGBA]uint8 // of the palette, as far as they were looked for
}

const filmWidth = 720

// unchanged is the transparent colour of the palette.
const unchanged = 255

// filmPalette has the page's colours on its background.
var filmPalette = func() color.Palette {
	const space = 0x05070a
	var p color.Palette
	mix := func(c int, share, of int) {
		channel := func(shift int) uint8 {
			back, front := space>>shift&255, c>>shift&255
			return uint8(back + (front-back)*share/of)
		}
		if c := (color.RGBA{channel(16), channel(8), channel(0), 255}); !slices.Contains(p, color.Color(c)) {
			p = append(p, c)
		}
	}
	for _, c := range []int{space, 0x0d1115, 0x182027, 0x232c34, 0x6b7884, 0x26323c, 0x45525d, 0x66727d, 0x5a6873, 0x8fa6ba, 0xd6e2ec} {
		mix(c, 1, 1)
	}
	for c, shades := range map[int]int{
		0xf1f5f7: 20, 0xff9a5a: 24, 0xffbe3d: 12, 0x58b2f5: 14, 0x35d8ac: 10, 0xff7c98: 10, 0xff7b52: 8, 0xa9c9e6: 10,
		0x3d8fe0: 8, 0xa5dcf7: 8, 0xf2d75c: 6, 0xd96c24: 6, 0xb87be6: 6, 0xffd9a0: 8, 0xa9d8ff: 8, 0x8c9aa6: 12,
	} {
		for i := range shades {
			mix(c, i+1, shades)
		}
	}
	if len(p) > unchanged {
		panic("the palette has too many colours")
	}
	for len(p) < unchanged {
		p = append(p, p[0])
	}
	return append(p, color.RGBA{})
}()

// shoot adds a picture.
func (f *film) shoot() {
	if *shots == "" {
		return
	}
	shot, err := chromedp.Run(f.tab.ctx, chromedp.CaptureScreenshot())
	check(f.tab.t, err)
	now := time.Now()
	if n := len(f.movie.Delay); n > 0 {
		f.movie.Delay[n-1] = max(6, min(int(now.Sub(f.taken)/(10*time.Millisecond)), 40))
	}
	f.taken = now
	full, err := png.Decode(bytes.NewReader(shot))
	check(f.tab.t, err)
	picture := f.reduce(full)
	f.movie.Image = append(f.movie.Image, f.changes(picture))
	f.movie.Delay = append(f.movie.Delay, 250)
	f.movie.Disposal = append(f.movie.Disposal, gif.DisposalNone)
	f.before = picture
}

// run adds so many pictures.
func (f *film) run(pictures int, step time.Duration) {
	for range pictures {
		next := time.Now().Add(step)
		f.shoot()
		time.Sleep(time.Until(next))
	}
}

// reduce scales a picture down, and gives it the colours of the palette.
func (f *film) reduce(full image.Image) *image.Paletted {
	from := full.Bounds()
	small := image.NewPaletted(image.Rect(0, 0, filmWidth, filmWidth*from.Dy()/from.Dx()), filmPalette)
	scale := float64(from.Dx()) / filmWidth
	// A pixel is the mean of those that it covers.
	cover := func(i, most int) (first, last int, share func(int) float64) {
		begin, end := float64(i)*scale, float64(i+1)*scale
		return int(begin), min(int(end), most-1), func(k int) float64 {
			return max(0, min(end, float64(k+1))-max(begin, float64(k)))
		}
	}
	for y := range small.Rect.Dy() {
		top, bottom, tall := cover(y, from.Dy())
		for x := range small.Rect.Dx() {
			left, right, wide := cover(x, from.Dx())
			var sum [3]float64
			for j := top; j <= bottom; j++ {
				for i := left; i <= right; i++ {
					r, g, b, _ := full.At(i, j).RGBA()
					for k, v := range [3]uint32{r, g, b} {
						sum[k] += wide(i) * tall(j) * float64(v>>8)
					}
				}
			}
			mean := func(k int) uint8 { return uint8(min(sum[k]/(scale*scale), 255)) }
			small.Pix[small.PixOffset(x, y)] = f.colour(color.RGBA{mean(0), mean(1), mean(2), 255})
		}
	}
	return small
}

func (f *film) colour(c color.RGBA) uint8 {
	index, known := f.colours[c]
	if !known {
		if f.colours == nil {
			f.colours = map[color.RGBA]uint8{}
		}
		index = uint8(filmPalette[:unchanged].Index(c))
		f.colours[c] = index
	}
	return index
}

// changes returns the rectangle of a picture that has changed, in which what has not is transparent.
func (f *film) changes(picture *image.Paletted) *image.Paletted {
	if f.before == nil {
		return picture
	}
	var changed image.Rectangle
	differs := func(x, y int) bool {
		return picture.Pix[picture.PixOffset(x, y)] != f.before.Pix[f.before.PixOffset(x, y)]
	}
	for y := range picture.Rect.Dy() {
		for x := range picture.Rect.Dx() {
			if differs(x, y) {
				changed = changed.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	if changed.Empty() {
		changed = image.Rect(0, 0, 1, 1)
	}
	part := image.NewPaletted(changed, filmPalette)
	for y := changed.Min.Y; y < changed.Max.Y; y++ {
		for x := changed.Min.X; x < changed.Max.X; x++ {
			part.SetColorIndex(x, y, unchanged)
			if differs(x, y) {
				part.SetColorIndex(x, y, picture.ColorIndexAt(x, y))
			}
		}
	}
	return part
}

// mostFilm is the most that an animation takes in a page that shows it.
const mostFilm = 3_000_000 // bytes

// save writes the animation.
func (f *film) save(name string) {
	if *shots == "" {
		return
	}
	var b bytes.Buffer
	check(f.tab.t, gif.EncodeAll(&b, &f.movie))
	f.tab.t.Logf("%s has %d pictures in %.2f MB", name, len(f.movie.Image), float64(b.Len())/1e6)
	if b.Len() > mostFilm {
		f.tab.t.Errorf("%s is larger than %d bytes", name, mostFilm)
	}
	check(f.tab.t, os.WriteFile(filepath.Join(*shots, name+".gif"), b.Bytes(), 0o644))
}
