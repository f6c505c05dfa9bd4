"""Draws `docs/demo.svg`, what the demo's own metrics say while a tenant arrives: `python docs/picture.py`, 90 s."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from capwatch.demo.readings import Reading, read

PORT = "10078"
SPEED, SECONDS = 10, 85
"""The demo's, and how long (s) it is watched."""
WINDOW_S = 180.0
"""Of event time, over which each point is a mean."""
WIDTH, HEIGHT, MARGIN = 720, 260, 30
RIGHT = 200
LOW, HIGH = -20, 40
"""Per cent."""
COLOURS = {"requests per second": "#1565c0", "replica-seconds per request": "#c62828", "requests in flight": "#ef6c00"}
Points = Sequence[tuple[float, float]]


def watched() -> list[Reading]:
    """A reading of the page every half second of a demo."""
    found = []
    program = "from capwatch.cli import main; main()"
    command = [sys.executable, "-c", program, "demo", "--speed", str(SPEED), "--port", PORT]
    demo = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
    try:
        while len(found) < 2 * SECONDS:
            time.sleep(0.5)
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=5) as page:
                    found.append(read(page.read().decode()))
            except OSError:
                continue
    finally:
        demo.terminate()
        demo.wait()
    return [one for one in found if one.at]


def curves(readings: Sequence[Reading]) -> dict[str, Points]:
    """What is drawn, by title: (minutes, change against the first point in per cent)."""
    found: dict[str, list[tuple[float, float]]] = {title: [] for title in COLOURS}
    for last in readings:
        first = next((one for one in reversed(readings) if one.at <= last.at - WINDOW_S), None)
        if first is None:
            continue
        names = ("requests_total", "cost_replica_seconds_total", "phase_seconds_total")
        requests, cost, phases = (last.sums[name] - first.sums[name] for name in names)
        seconds = last.at - first.at
        values = (requests / seconds, cost / max(requests, 1), phases / seconds)
        for points, value in zip(found.values(), values, strict=True):
            points.append((last.at / 60, value))
    return {
        title: [(at - points[0][0], 100 * (value / points[0][1] - 1)) for at, value in points]
        for title, points in found.items()
    }


def svg(drawn: dict[str, Points]) -> str:
    """The curves in one frame."""
    until = max(points[-1][0] for points in drawn.values())

    def place(at: float, value: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - RIGHT - MARGIN) * at / until
        return x, MARGIN + (HEIGHT - 2 * MARGIN) * (HIGH - value) / (HIGH - LOW)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"',
        ' font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{MARGIN}" y="18" font-weight="bold">change since the beginning, means of three minutes</text>',
    ]
    for value in range(LOW, HIGH + 1, 20):
        (x, y), (end, _) = place(0, value), place(until, value)
        parts.append(f'<path d="M{x} {y:.0f}H{end:.0f}" stroke="{"#777" if value == 0 else "#ddd"}"/>')
        parts.append(f'<text x="0" y="{y + 4:.0f}" fill="#666" font-size="10">{value:+} %</text>')
    for title, points in drawn.items():
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        x, y = place(*points[-1])
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[title]}" stroke-width="2"/>')
        parts.append(f'<text x="{x + 6:.0f}" y="{y + 4:.0f}" fill="{COLOURS[title]}">{title}</text>')
    parts.append(f'<text x="{place(until, 0)[0]:.0f}" y="{HEIGHT - 8}" text-anchor="end">{until:.0f} minutes</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("demo.svg").write_text(svg(curves(watched())))
