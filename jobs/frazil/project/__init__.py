"""The search for a project's declarations and environments."""
