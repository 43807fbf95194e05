"""Views, copies and other layouts: ops that move elements and do not change them."""
