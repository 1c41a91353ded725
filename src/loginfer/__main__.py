"""`python -m loginfer` is the command `loginfer`."""

from __future__ import annotations

from loginfer.cli import main

if __name__ == "__main__":
    main()
