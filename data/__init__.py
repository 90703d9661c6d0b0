"""Text: where it comes from, how it is cleaned, how it is split. Imports nothing from the other packages."""
