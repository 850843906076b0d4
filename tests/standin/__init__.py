"""Stand-ins for AWS and Confluent, for the deployment demo and the tests."""
