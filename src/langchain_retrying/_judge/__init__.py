"""What is a reply? Its kind, found in the message or in the exception that came instead.

Imports nothing else of this package.
"""
