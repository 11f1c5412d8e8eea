"""Names inside of queries that travel as text, where no parameter can be bound."""

from __future__ import annotations


def sql_text(name: str) -> str:
    """Return an expression for a text in hexadecimal: a service may be called anything."""
    return f"unhex('{name.encode().hex()}')"
