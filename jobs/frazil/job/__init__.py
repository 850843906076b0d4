"""What every entry point needs: arguments, checks at startup, shutdown, log lines, failpoints."""
