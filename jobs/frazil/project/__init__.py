"""A project's declarations and environments, and where they are found."""
