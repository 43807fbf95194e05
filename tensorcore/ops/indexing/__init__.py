"""Reading and writing at places."""
