"""The check that exercises use, and the drivers that several share."""
