"""Policies as JSON documents, and the rules that a synthesised stack and a plan must pass (`python -m policies`)."""
