"""The steps before the first batch: the table, its ledger and open decisions."""
