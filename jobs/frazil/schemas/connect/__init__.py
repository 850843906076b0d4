"""The schemas and types of Kafka Connect."""
