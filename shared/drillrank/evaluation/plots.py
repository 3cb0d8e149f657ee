"""Plots of a comparison as SVG: their colours are the page's, their numbers stand in a description, too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

_ADVANCE = 8  # of a character of a label
_LABEL = 30  # characters
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 320, 88, 54, 18


def quality_against_latency(points: Mapping[str, tuple[float, float]], measure: str) -> str:
    """Components by median milliseconds (logarithmic) and quality.

    >>> quality_against_latency({"UPR": (1.5, 0.8)}, "nDCG@10").count("<circle")
    1
    """
    logs = {name: math.log10(max(ms, 1e-3)) for name, (ms, _) in points.items()}
    low, high = math.floor(min(logs.values())), math.ceil(max(logs.values()) + 1e-9)
    high = max(high, low + 1)
    qualities = [quality for _, quality in points.values()]
    bottom, top = max(0.0, min(qualities) - 0.05), min(1.0, max(qualities) + 0.05)
    parts = [_axes("median ms a question", measure)]
    parts += [_tick_x(_x(power, low, high), f"{10.0**power:g}") for power in range(low, high + 1)]
    parts += [_tick_y(_y(share, bottom, top), f"{share:.2f}") for share in np.linspace(bottom, top, 5).tolist()]
    dots = {name: (_x(logs[name], low, high), _y(quality, bottom, top)) for name, (_, quality) in points.items()}
    taken: list[tuple[float, float]] = []
    for name, (x, y) in sorted(dots.items(), key=lambda item: item[1][1]):
        label = y + 4
        end = x > _WIDTH - 170
        shown = name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"
        reach = sorted((0, (-1 if end else 1) * (16 + _ADVANCE * len(shown))))
        beside = [other for at, other in dots.values() if at != x and reach[0] <= at - x <= reach[1]]
        while any(abs(label - other) < 18 and abs(x - at) < 150 for at, other in taken) or any(
            abs(label - 4 - other) < 12 for other in beside
        ):
            label += 18
        taken.append((x, label))
        parts.append(f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        parts.append(
            f'<text x="{x + (-10 if end else 10):.1f}" y="{label:.1f}" text-anchor="{"end" if end else "start"}">'
            f"{escape(shown)}</text>"
        )
    told = "; ".join(f"{name}: {ms:.3g} ms, {quality:.3f}" for name, (ms, quality) in points.items())
    return _svg(parts, f"{measure} against median latency", told)


def differences(values: Sequence[float], title: str) -> str:
    """The differences of all questions, sorted: below the line the first one is better, above it the second.

    >>> differences([0.5, 0.0, -1.0], "UPR minus first stage").count("<rect")
    2
    """
    ordered = sorted(values)
    reach = max(map(abs, ordered), default=0.0) or 1.0
    wide = (_WIDTH - _LEFT - 12) / max(len(ordered), 1)
    zero = _y(0, -reach, reach)
    parts = [_axes("questions, sorted", "difference")]
    parts += [_tick_y(_y(level, -reach, reach), f"{level:+.2f}") for level in (-reach, 0.0, reach)]
    for place, value in enumerate(ordered):
        if value:
            y = _y(value, -reach, reach)
            parts.append(
                f'<rect class="{"up" if value > 0 else "down"}" x="{_LEFT + place * wide:.2f}" y="{min(y, zero):.1f}" '
                f'width="{max(wide, 0.6):.2f}" height="{abs(y - zero):.1f}"/>'
            )
    better, worse = sum(v > 0 for v in ordered), sum(v < 0 for v in ordered)
    return _svg(parts, title, f"{better} questions better, {worse} worse, {len(ordered) - better - worse} equal")


def histogram(values: Sequence[float], title: str) -> str:
    """How scores are spread, in 20 bins.

    >>> histogram([-1.0, -2.0, -2.0], "scores").count("<rect")
    2
    """
    counts, edges = np.histogram(values, bins=20)
    most = int(counts.max()) or 1
    low, high = float(edges[0]), float(edges[-1])
    parts = [_axes("score of the first result", "questions"), _tick_y(_y(most, 0, most), str(most))]
    parts += [_tick_x(_x(edge, low, high), f"{edge:.2f}") for edge in (low, (low + high) / 2, high)]
    for count, start, end in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if count:
            x, y = _x(start, low, high), _y(count, 0, most)
            width = _x(end, low, high) - x - 1
            height = _HEIGHT - _BOTTOM - y
            parts.append(f'<rect class="mark" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>')
    return _svg(parts, title, f"{len(values)} scores from {low:.3f} to {high:.3f}, median {np.median(values):.3f}")


def _x(value: float, low: float, high: float) -> float:
    return _LEFT + 8 + (value - low) / ((high - low) or 1) * (_WIDTH - _LEFT - 32)


def _y(value: float, low: float, high: float) -> float:
    return _HEIGHT - _BOTTOM - (value - low) / ((high - low) or 1) * (_HEIGHT - _BOTTOM - _TOP)


def _axes(x: str, y: str) -> str:
    base = _HEIGHT - _BOTTOM
    return (
        f'<path class="axis" d="M{_LEFT} {_TOP}V{base}H{_WIDTH - 12}"/>'
        f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x)}</text>'
        f'<text transform="translate(18 {base / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(y)}</text>'
    )


def _tick_x(x: float, label: str) -> str:
    return f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 17}" text-anchor="middle">{label}</text>'


def _tick_y(y: float, label: str) -> str:
    return f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'


def _svg(parts: Sequence[str], title: str, described: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}. {escape(described)}">'
        f"<title>{escape(title)}</title><desc>{escape(described)}</desc>{''.join(parts)}</svg>"
    )
