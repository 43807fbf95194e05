"""A program that is a module: it prints its arguments."""

import sys

if __name__ == "__main__":
    print(sys.argv[1:])
