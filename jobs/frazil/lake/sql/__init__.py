"""SQL that people run over a table, for each engine."""
