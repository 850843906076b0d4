"""`frazil demo`."""


def demo() -> None:
    """The whole story."""
