"""The whole report: what was measured, why it is so, and what to do, from one evidence."""

from __future__ import annotations
