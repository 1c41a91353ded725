"""`python -m loginfer` is the command `loginfer`."""

from loginfer.cli import main

if __name__ == "__main__":
    main()
