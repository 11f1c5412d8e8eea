"""What pages show: queries that only read, each with its values bound.

Every function takes the store and blocks until ClickHouse has answered. Times are whole seconds
of event time unless a name says otherwise. What was not measured is None.
"""
