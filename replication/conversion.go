package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/schema"

func useConversion(c schema.Conversion, paths []string) ComponentOption {
	return func(o *schema.Options) {
		o.Conversions = append(o.Conversions, &schema.ConversionUse{Conversion: c, Paths: paths, Met: make([]bool, max(1, len(paths)))})
	}
}
