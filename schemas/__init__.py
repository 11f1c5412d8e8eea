"""What things are: records, panes, settings, targets, verdicts, rows and errors.

Nothing here reads a clock, a socket or a file but `settings`, which reads the one it is given.
"""
