"""The kinds of checks that exercises use."""
