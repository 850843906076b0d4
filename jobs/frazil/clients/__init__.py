"""The services beside the lake: Kafka, the schema registry, secrets. Only these modules hold their SDKs."""
