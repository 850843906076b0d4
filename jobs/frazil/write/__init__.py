"""Write modes: the columns and the changes that each of them makes of decoded records."""
