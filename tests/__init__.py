"""The tests of tensorcore, laid out as the library is."""
