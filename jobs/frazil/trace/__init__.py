"""The way from a row to its Kafka record and back, by other libraries than those that landed it."""
