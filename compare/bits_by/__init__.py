"""Where the bits go: the bits of the test text by kind of character, by position, by context seen, by word."""
