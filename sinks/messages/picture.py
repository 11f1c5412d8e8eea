"""A picture of the last hour: the p99 a minute, its target, and where the incident is.

Drawn with Pillow, which needs no browser and no display and has a font of its own; plotly, which
draws the report, would need Chromium to make a PNG, and matplotlib takes ten times the room.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from tailbudget.sinks.report.figures import number

SIZE: Final = (800, 320)
_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 44, 780, 280
_INK, _FAINT, _LINE, _BAD, _SLO = "#24292f", "#d0d7de", "#0969da", "#ffebe9", "#cf222e"
_TICKS: Final = 4
_TEXT_PX: Final = 14
_MINUTE_NS: Final = 60 * 10**9


@dataclass(frozen=True, slots=True)
class LastHour:
    """What is drawn.

    Attributes:
        heading: one line, such as "chat p99".
        at_ns: start of each minute, ascending.
        value_ms: the percentile of each; None breaks the line.
        slo_ms: its target; None draws none.
        since_ns: when the incident began; None shades nothing.
        until_ns: when it ended; None while it lasts.
    """

    heading: str
    at_ns: Sequence[int]
    value_ms: Sequence[float | None]
    slo_ms: float | None = None
    since_ns: int | None = None
    until_ns: int | None = None


def png(hour: LastHour) -> bytes | None:
    """Return the picture; None where there is nothing to draw."""
    known = [value for value in hour.value_ms if value is not None]
    if not known:
        return None
    image = Image.new("RGB", SIZE, "white")
    canvas = _Canvas(ImageDraw.Draw(image), hour, 1.15 * max([*known, hour.slo_ms or 0.0, 1e-3]))
    canvas.shade()
    canvas.axes()
    canvas.target()
    canvas.line()
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


class _Canvas:
    """Draws one hour; `top_ms` is the upper edge."""

    def __init__(self, draw: ImageDraw.ImageDraw, hour: LastHour, top_ms: float) -> None:
        self._draw = draw
        self._hour = hour
        self._top_ms = top_ms
        self._first_ns = hour.at_ns[0]
        self._last_ns = max(hour.at_ns[-1] + _MINUTE_NS, self._first_ns + _MINUTE_NS)
        self._font = ImageFont.load_default(_TEXT_PX)

    def shade(self) -> None:
        """Shade the incident."""
        if self._hour.since_ns is None:
            return
        left = self._x(max(self._hour.since_ns, self._first_ns))
        right = self._x(min(self._hour.until_ns or self._last_ns, self._last_ns))
        if right > left:
            self._draw.rectangle((left, _TOP, right, _BOTTOM), fill=_BAD)

    def axes(self) -> None:
        """Draw the heading, the grid and its numbers."""
        self._draw.text((_LEFT, 12), _drawable(self._hour.heading), _INK, font=self._font)
        for step in range(_TICKS + 1):
            value = self._top_ms * step / _TICKS
            y = self._y(value)
            self._draw.line((_LEFT, y, _RIGHT, y), fill=_FAINT)
            self._draw.text((_LEFT - 8, y), number(value), _INK, font=self._font, anchor="rm")
            at_ns = self._first_ns + (self._last_ns - self._first_ns) * step // _TICKS
            x = self._x(at_ns)
            self._draw.text((x, _BOTTOM + 8), _clock(at_ns), _INK, font=self._font, anchor="ma")
        self._draw.text((_RIGHT, 12), "ms, UTC", _INK, font=self._font, anchor="ra")

    def target(self) -> None:
        """Draw the target."""
        if self._hour.slo_ms is None:
            return
        y = self._y(self._hour.slo_ms)
        self._draw.line((_LEFT, y, _RIGHT, y), fill=_SLO, width=2)
        text = f"SLO {number(self._hour.slo_ms)}"
        self._draw.text((_RIGHT - 4, y - 3), text, _SLO, font=self._font, anchor="rs")

    def line(self) -> None:
        """Draw the measured values; a minute without one breaks the line."""
        run: list[tuple[float, float]] = []
        pairs = zip(self._hour.at_ns, self._hour.value_ms, strict=True)
        for at_ns, value in [*pairs, (0, None)]:
            if value is not None:
                run.append((self._x(at_ns + _MINUTE_NS // 2), self._y(value)))
                continue
            if len(run) > 1:
                self._draw.line(run, fill=_LINE, width=2, joint="curve")
            for x, y in run[:1] if len(run) == 1 else ():
                self._draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill=_LINE)
            run = []

    def _x(self, at_ns: int) -> float:
        span = self._last_ns - self._first_ns
        return _LEFT + (_RIGHT - _LEFT) * (at_ns - self._first_ns) / span

    def _y(self, value_ms: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * value_ms / self._top_ms


def _clock(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 10**9, UTC).strftime("%H:%M")


def _drawable(text: str) -> str:
    """Return a name cut to the width, without line breaks."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 80 else flat[:79] + "…"
