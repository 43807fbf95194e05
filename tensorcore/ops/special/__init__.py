"""Special functions, which few programs call."""
