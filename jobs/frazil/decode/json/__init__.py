"""JSON bodies to rows."""
