"""`python -m calibrant`: the command line."""

from calibrant_command import main

if __name__ == "__main__":
    main()
