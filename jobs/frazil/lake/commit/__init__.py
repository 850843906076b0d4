"""The only code that changes rows and offsets: check, append, and one decision for several tables."""
