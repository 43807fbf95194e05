"""The cases of the conformance suite, one file for a level or a part of it."""
