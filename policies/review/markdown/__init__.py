"""A review for people, as Markdown and as JSON."""
