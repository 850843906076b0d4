"""Constructs, one a module, named by what it means. They say what is made; `stacks` says which of them, and where."""
