"""What does the user decide? What is retried, with which remedies, and where it ends.

Pure: strategies and remedies are given what happened and return what is to be done. Imports the
error and the judge.
"""
