"""The commands of a deployment: synthesis, plans, reviews and applies."""
