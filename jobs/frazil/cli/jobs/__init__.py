"""Commands about job runs of a deployed environment."""
