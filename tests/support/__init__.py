"""What tests share: definitions without our code, made-up benchmarks, drivers of the program and a browser."""

from pathlib import Path

SUPPORT = Path(__file__).parent
