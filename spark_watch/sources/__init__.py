"""One file per thing read from the machine; nothing above this package reads it."""
