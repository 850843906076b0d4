"""The ledger: entries in the summaries of a table's own snapshots, and the values that they hold."""
