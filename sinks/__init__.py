"""Where results go: ClickHouse and chat channels.

A write returns once the other side has acknowledged it.
It raises `UnavailableError` where trying again may help and `StorageError` where it can't.
"""
