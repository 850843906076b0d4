"""The accounts that commits carry on, compared with the files."""
