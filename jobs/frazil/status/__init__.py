"""What a pipeline's table and topic say about its progress."""
