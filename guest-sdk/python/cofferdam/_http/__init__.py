"""HTTP over `wasi:http`, for the HTTP libraries of Python.

CPython has no `ssl` here, and a connection of its own would need a grant of sockets. So the
libraries get a socket that the host stands behind, and a module `ssl` that leaves TLS to the host.
"""
