"""What the package costs, next to others and to itself at twice the input.

Run ``python -m benchmarks --help`` from the root of the repository. Nothing here asserts a speed:
numbers are for people to read, and what can be asserted without a clock is in ``tests/test_linear.py``.
"""
