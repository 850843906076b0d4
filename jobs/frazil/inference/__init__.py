"""The types that JSON records have in common, and the schemas that say so."""
