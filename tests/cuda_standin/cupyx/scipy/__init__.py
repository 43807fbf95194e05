"""``cupyx.scipy``."""
