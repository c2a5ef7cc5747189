package baseline

// AddClass adds the slots of a class.
func (c *Classes) AddClass(k Class) {
	for i := range c.List {
		if o := &c.List[i]; o.Baselines == k.Baselines && o.Third == k.Third && !o.Full {
			o.Mask |= k.Mask
			return
		}
	}
	c.List = append(c.List, k)
}
