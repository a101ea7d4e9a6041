# SPDX-License-Identifier: Apache-2.0
"""The numbers of a run as JSON, a Markdown table and an SVG chart."""

from __future__ import annotations

import json
from html import escape


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.2f}" if milliseconds >= 1 else f"{milliseconds:.4f}"


def span(entry: dict, key: str = "ratio") -> str:
    """A ratio with the range of its rounds."""
    return f"{entry[key]:.2f} ({entry[key + '_low']:.2f}-{entry[key + '_high']:.2f})"


def _row(entry: dict) -> str:
    memory = "-" if entry["peak_bytes"] is None else f"{entry['peak_bytes'] / 2**20:.1f}"
    return (
        f"| {entry['contest']} | {entry['tokens']} | {entry['pass']} | {entry['contestant']} | {_ms(entry['ms_median'])} | "
        f"{_ms(entry['cpu_ms_median'])} | {span(entry)} | {span(entry, 'cpu_ratio')} | {memory} | {entry['error']:.0e} |"
    )


def best(result: dict) -> list:
    """The entry of the fastest peer of each contest, size and pass."""
    fastest: dict = {}
    for entry in result["entries"]:
        key = (entry["contest"], entry["tokens"], entry["pass"])
        if entry["contestant"] != "locus" and entry["ratio"] < fastest.get(key, {"ratio": float("inf")})["ratio"]:
            fastest[key] = entry
    return list(fastest.values())


def _summary(result: dict) -> list:
    """A line per contest and pass: the fastest peer at each size, and how many times as long as Locus it takes."""
    sizes = sorted({entry["tokens"] for entry in result["entries"]})
    cells = {(e["contest"], e["pass"], e["tokens"]): f"{span(e)} {e['contestant']}" for e in best(result)}
    kinds = dict.fromkeys((contest, direction) for contest, direction, _ in cells)
    return [
        "| contest | pass | " + " | ".join(f"n = {size}" for size in sizes) + " |",
        "|---|---|" + "---|" * len(sizes),
        *(
            f"| {contest} | {direction} | "
            + " | ".join(cells.get((contest, direction, size), "-") for size in sizes)
            + " |"
            for contest, direction in kinds
        ),
    ]


def _about(about: dict) -> str:
    threads = f"{about['threads']} thread{'s' if about['threads'] > 1 else ''}"
    runtime = f"ONNX Runtime {about['onnxruntime']}" if about["onnxruntime"] else "no ONNX Runtime"
    memory = ", malloc keeps freed memory" if about["memory"] == "kept" else ""
    return (
        f"Locus {about['locus']} ({about['isa']}), torch {about['torch']}, transformers {about['transformers']}, {runtime}, "
        f"{threads}, batch {about['batch']}, {about['heads']} heads of {about['width']}, float32{memory}. Medians of "
        f"{about['rounds']} interleaved rounds; × is the median of the ratios to Locus within a round, and their range (above 1: "
        "Locus is faster)."
    )


def markdown(result: dict) -> str:
    lines = [
        _about(result["about"]),
        "",
        "The fastest peer, ×:",
        "",
        *_summary(result),
        "",
        "All of them. CPU: of all threads; peak: MB beyond what was there before the call; error: against double, of the "
        "largest element.",
        "",
        "| contest | n | pass | contestant | ms | CPU ms | × | CPU × | peak MB | error |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *map(_row, result["entries"]),
    ]
    if result["absent"]:
        lines += ["", "Not measured:", ""]
        lines += [f"- {item['contest']}, {item['contestant']}: {item['why']}" for item in result["absent"]]
    return "\n".join(lines) + "\n"


def svg(result: dict) -> str:
    """Bars of the ratios at the largest size; the line is Locus."""
    most = max((entry["tokens"] for entry in result["entries"]), default=0)
    rows = [e for e in result["entries"] if e["tokens"] == most and e["contestant"] != "locus"]
    left, scale, height = 360, 60, 20
    widest = max([entry["ratio"] for entry in rows], default=1.0)
    width = left + int(scale * min(widest, 12)) + 70
    total = 50 + height * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" viewBox="0 0 {width} {total}" '
        'font-family="sans-serif" font-size="11">',
        f"<title>Time over that of Locus, n = {most}</title>",
        f'<rect width="{width}" height="{total}" fill="#fff"/>',
        f'<text x="10" y="20" font-size="13">Time over that of Locus, n = {most} (longer: slower than Locus)</text>',
    ]
    for i, entry in enumerate(rows):
        y = 40 + i * height
        bar = scale * min(entry["ratio"], 12)
        colour = "#4477aa" if entry["pass"] == "forward" else "#cc7733"
        label = escape(f"{entry['contest']}: {entry['contestant']}, {entry['pass']}")
        parts.append(f'<text x="{left - 6}" y="{y + 12}" text-anchor="end">{label}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{bar:.1f}" height="{height - 6}" fill="{colour}"/>')
        parts.append(f'<text x="{left + bar + 4:.1f}" y="{y + 12}">{entry["ratio"]:.2f}</text>')
    parts.append(f'<path d="M{left + scale} 32V{total - 6}" stroke="#000" stroke-dasharray="3 3"/>')
    return "\n".join(parts) + "\n</svg>\n"


def write(result: dict, folder) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / "bench.md").write_text(markdown(result))
    (folder / "bench.svg").write_text(svg(result))
