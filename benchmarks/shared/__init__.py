"""What the benchmarks share: how they measure, the models they measure on, how they report."""

import logging

# Each retry is told to the log, which is not to be written between the lines of a table.
logging.getLogger("langchain_retrying").addHandler(logging.NullHandler())
