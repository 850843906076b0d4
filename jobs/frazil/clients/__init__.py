"""The services next to the lake: Kafka, the schema registry, secrets. Only these modules hold their SDKs."""
