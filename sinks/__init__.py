"""Where results go: ClickHouse, chat channels and reports.

A write returns once the other side has acknowledged it.
It raises `UnavailableError` where trying again may help and `StorageError` where it can't.
"""
