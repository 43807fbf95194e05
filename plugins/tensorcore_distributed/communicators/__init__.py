"""One module for each transport, and the arithmetic that they share."""
