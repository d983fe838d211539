"""The interpreter of programs: checks a program, runs it on an event loop whose waits are calls of
tools, and converts its result or error.
"""
