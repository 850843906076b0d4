"""A deployment as people declare it: settings, and what exists already."""
