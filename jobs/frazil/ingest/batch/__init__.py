"""The steps of one batch: read, decode, route, stage and account for its records."""
