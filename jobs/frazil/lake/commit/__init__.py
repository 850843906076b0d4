"""The only code that changes rows and offsets: check, commit, and one decision for several tables."""
