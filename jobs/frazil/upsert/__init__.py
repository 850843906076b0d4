"""Upserts: fold a batch to one change for each key, find the old rows, and delete them."""
