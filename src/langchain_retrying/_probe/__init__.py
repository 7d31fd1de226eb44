"""How a model is measured: the commands `langchain-retrying probe` and `langchain-retrying demo`.

This room may import all others; none imports it. Inside it imports run
`cli -> demo -> probe -> report -> figures -> runs -> inputs`.
"""
