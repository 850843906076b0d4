"""Values of a row, whatever its format."""
