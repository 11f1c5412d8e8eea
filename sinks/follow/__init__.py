"""News of an incident belongs to the message that told it, where a channel can do that.

A file a kind of channel. Each says what it needs of Apprise's plugin to begin with (`begin`), what
a later message needs to know of the first (`handle`), and how it is edited or answered (`follow`).
Whatever cannot be followed any more becomes a message of its own.
"""
