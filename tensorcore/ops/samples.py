"""Calls to test the ops with."""
def unary(array): yield (array(3, 4),), {}
def pair(array): yield (array(3, 4), array(3, 4)), {}
