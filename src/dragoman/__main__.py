"""`python -m dragoman` is the command `dragoman`: for launchers that start modules."""

from dragoman.cli import main

if __name__ == "__main__":
    main()
