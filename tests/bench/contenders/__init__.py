"""Who runs, each in a process of its own: what people write first, the spike, ours, and the parts of ours alone."""
