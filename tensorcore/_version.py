"""The version, written once; the build reads this file without running it."""

__version__ = "0.1.0"
