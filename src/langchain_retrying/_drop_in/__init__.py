"""What stands in for the inner model? Its class, state, copies, bindings, fields and cache.

Knows of attempts nothing. Imports the policy and what that imports.
"""
