"""What is one call? Its attempts, what is held of them, and what comes next.

Decides and holds; what is sent, waited for and yielded is the entry points' business. Imports the
policy and what that imports.
"""
