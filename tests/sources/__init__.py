"""The things read from the machine, on trees of text and on hostile text."""
