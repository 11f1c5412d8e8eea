"""ClickHouse tables and views as numbered, forward-only SQL files."""
