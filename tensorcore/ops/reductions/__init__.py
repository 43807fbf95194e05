"""From many elements to few, scans, and orders."""
