"""The page of `frazil ui` and the file of `frazil status --html`: pipelines as HTML, read only."""
