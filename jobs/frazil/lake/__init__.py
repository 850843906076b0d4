"""The Iceberg side: session, ledger, stage, publish, evolve; reader."""
