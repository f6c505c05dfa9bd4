// Does capwatch see everything: each source, up, behind, dropped, newest event.

import { bytes, clock, el, fill, framed, number } from "./words.js";

const HEADINGS = ["source", "state", "lag", "newest event", "lines read", "dropped", "lost"];
const FIGURES = ["lag", "newest event", "lines read"];

export function showSources(parent, status) {
  if (!status.sources.length) return fill(parent, el("p", { class: "warn" }, "No source is configured."));
  return fill(parent, framed({ class: "sources" }, "Sources", HEADINGS, FIGURES, status.sources.map(row)));
}

function row(source) {
  const { name, format, up, problems, lag_bytes: lag, last_event: last, lines } = source;
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, name, el("span", { class: "dim" }, ` ${format}`)),
    el(
      "td",
      { class: up && !problems.length ? "" : "warn" },
      problems.length ? problems.join("; ") : up ? "reads" : "silent",
    ),
    el("td", { class: "n" }, bytes(lag)),
    el("td", { class: "n" }, last === null ? "–" : `${clock(last, true)} UTC`),
    el("td", { class: "n" }, number(lines.read, 12)),
    counts(lines.dropped),
    counts(source.bytes.lost),
  );
}

/** What is not 0, by reason. */
function counts(by) {
  const found = Object.entries(by).filter(([, count]) => count);
  const told = found.map(([reason, count]) => `${reason} ${number(count, 9)}`).join(", ");
  return el("td", { class: told ? "warn" : "" }, told || "none");
}
