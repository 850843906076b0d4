"""The plan of a batch: which offsets it reads."""
