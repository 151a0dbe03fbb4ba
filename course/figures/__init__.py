"""The runs behind the lessons' figures: small, seeded, the same on every machine. A module for each subject."""
