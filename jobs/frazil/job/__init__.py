"""The needs of every entry point: arguments, checks at startup, shutdown, log lines, failpoints."""
