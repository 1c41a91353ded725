"""The program as a process of its own."""

import sys

# Tests that run in the background are started with a deaf ear to Ctrl-C, and so are the programs they start.
_CODE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from loginfer.cli import main; main()"
PROGRAM = (sys.executable, "-c", _CODE)
