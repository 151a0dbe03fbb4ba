"""The course in a tab of a browser: the engine steps there, and parts are written and checked."""
