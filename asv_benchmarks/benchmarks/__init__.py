"""The suites, one file each; a row is written once and runs for every peer."""
