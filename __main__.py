"""`python -m corral` is the `corral` command."""

from .cli.main import main

if __name__ == "__main__":
    main()
