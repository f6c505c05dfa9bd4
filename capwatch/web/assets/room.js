// Is there room: the figures of the pool at a glance, its promises, and its replicas.

import { bytes, clock, el, fill, fixed, number, percent, seconds, span } from "./words.js";

/** A figure with what it means. */
const tile = (label, figure, note, kind) =>
  el(
    "div",
    { class: `tile ${kind ?? ""}` },
    el("dt", {}, label),
    el("dd", {}, el("b", {}, figure), el("span", { class: "dim" }, note ?? "")),
  );

const above = (value, limit) => value !== null && value > limit;
const sum = (values) => Object.values(values).reduce((total, value) => (value === null ? total : total + value), 0);

export function showTiles(list, pool, history) {
  const told = history?.pools[pool.name];
  const good = told?.goodput.findLast((value) => value !== null) ?? null;
  const spare = pool.headroom.none;
  const known = Object.values(pool.in_flight).some((value) => value !== null);
  const change = pool.cost !== null && pool.cost_reference ? pool.cost / pool.cost_reference - 1 : null;
  fill(
    list,
    tile("Requests", `${number(pool.rate)}/s`, "last 5 min"),
    tile(
      "Work per request",
      pool.cost === null ? "–" : `${fixed(pool.cost, pool.cost < 0.1 ? 4 : 2)} s`,
      change === null ? "replica-seconds" : `5 min: ${change >= 0 ? "+" : "−"}${percent(Math.abs(change))}`,
      change !== null && change > 0.1 ? "warn" : "",
    ),
    tile(
      "Utilisation",
      percent(pool.utilisation),
      `target ${percent(pool.target)}`,
      above(pool.utilisation, 1) ? "bad" : above(pool.utilisation, pool.target) ? "warn" : "",
    ),
    tile(
      "Headroom",
      spare === null ? "–" : `${spare > 0 ? "+" : ""}${fixed(spare, 0)}`,
      pool.replicas === null ? "replicas unknown" : `of ${number(pool.replicas)} replicas`,
      spare !== null && spare < 0 ? "warn" : "",
    ),
    tile(
      "In flight",
      known ? number(sum(pool.in_flight)) : "–",
      pool.expected_wait_s === null ? "" : `wait ${seconds(pool.expected_wait_s)}`,
      above(pool.expected_wait_s, pool.wait_budget_s) ? "bad" : "",
    ),
    tile("Good requests", percent(good), "met every target"),
    tile(
      "KV memory",
      percent(pool.kv_demand_ratio),
      told && told.kv_full_s !== null
        ? told.kv_full_s === 0
          ? "full"
          : `full in ${span(told.kv_full_s)}`
        : "may be needed",
      above(pool.kv_demand_ratio, 1) ? "bad" : above(pool.kv_demand_ratio, 0.9) ? "warn" : "",
    ),
  );
}

const meter = (share, kind) =>
  el(
    "svg:svg",
    { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    el("svg:rect", { x: 0, y: 0, width: 100, height: 10, class: "empty" }),
    el("svg:rect", { x: 0, y: 0, width: 100 * Math.min(1, Math.max(0, share)), height: 10, class: kind }),
  );

const PROMISES = {
  base: "for the target at the present load",
  burst: "in a burst",
  zonal: "in a burst with a zone lost",
};
const FAILURES = { none: "as things are", replica: "with one replica lost", zone: "with the largest zone lost" };

function promises(pool) {
  const rows = [
    ...Object.entries(pool.needed)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [`Needed ${PROMISES[name]}`, number(value), above(value, pool.replicas ?? Infinity)]),
    ...Object.entries(pool.headroom)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [`To spare ${FAILURES[name]}`, `${value > 0 ? "+" : ""}${fixed(value, 0)}`, value < 0]),
  ];
  if (!rows.length)
    return el(
      "p",
      { class: "dim" },
      "How many replicas there are is not configured (pools: replicas), so nothing can be promised.",
    );
  return el(
    "table",
    { class: "plain" },
    el("caption", {}, `Replicas (there are ${number(pool.replicas)})`),
    el(
      "tbody",
      {},
      rows.map(([label, figure, short]) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, label),
          el(
            "td",
            { class: `n ${short ? "warn" : ""}` },
            figure,
            short ? el("span", { class: "unseen" }, " (too few)") : null,
          ),
        ),
      ),
    ),
  );
}

/** What has been preempted since the page was opened, by replica. */
const opened = new Map();

function engines(pool) {
  if (!pool.engines.length)
    return el(
      "p",
      { class: "dim" },
      "No engine tells of itself: its log, or its /metrics (engines:), would show KV memory and preemptions of each replica.",
    );
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Replicas" },
    el(
      "table",
      { class: "engines" },
      el("caption", {}, "Replicas as they last told"),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["replica", "KV memory", "running", "waiting", "preempted"].map((name, place) =>
            el("th", { scope: "col", class: place > 1 ? "n" : null }, name),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        [...pool.engines]
          .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }))
          .map((one) => {
            const key = `${pool.name}\n${one.name}`;
            if (!opened.has(key)) opened.set(key, one.preemptions);
            const fresh = one.preemptions - opened.get(key);
            const share = one.kv_utilisation;
            return el(
              "tr",
              {},
              el(
                "th",
                { scope: "row" },
                one.name,
                one.state === "unknown" ? el("span", { class: "warn" }, " silent") : null,
              ),
              el(
                "td",
                { class: "drawn" },
                share === null ? "–" : [meter(share, share > 0.95 ? "more" : "after"), el("span", {}, percent(share))],
              ),
              el("td", { class: "n" }, number(one.running)),
              el("td", { class: `n ${one.waiting > 0 ? "warn" : ""}` }, number(one.waiting)),
              el(
                "td",
                { class: `n ${fresh > 0 ? "warn" : ""}`, title: "in all, and since this page was opened" },
                number(one.preemptions, 6),
                fresh > 0 ? ` (+${number(fresh, 6)})` : "",
              ),
            );
          }),
      ),
    ),
  );
}

export function showRoom(parent, pool) {
  const left = [promises(pool)];
  if (pool.assumed)
    left.push(
      el(
        "p",
        { class: "warn" },
        "The rates of a replica are assumed, not measured: compare costs only with each other.",
      ),
    );
  fill(parent, el("div", {}, left), engines(pool));
}

/** Sources: up, behind, dropped, newest event. */
export function showSources(parent, status) {
  if (!status.sources.length) return fill(parent, el("p", { class: "warn" }, "No source is configured."));
  const dropped = (counts) =>
    Object.entries(counts)
      .filter(([, count]) => count)
      .map(([reason, count]) => `${reason} ${number(count, 9)}`)
      .join(", ");
  return fill(
    parent,
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "sources-title" },
      el(
        "table",
        { class: "sources" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["source", "state", "lag", "newest event", "lines read", "dropped", "lost"].map((name, place) =>
              el("th", { scope: "col", class: place > 1 && place < 5 ? "n" : null }, name),
            ),
          ),
        ),
        el(
          "tbody",
          {},
          status.sources.map((source) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, source.name, el("span", { class: "dim" }, ` ${source.format}`)),
              el(
                "td",
                { class: source.up && !source.problems.length ? "" : "warn" },
                source.problems.length ? source.problems.join("; ") : source.up ? "reads" : "silent",
              ),
              el("td", { class: "n" }, bytes(source.lag_bytes)),
              el("td", { class: "n" }, source.last_event === null ? "–" : `${clock(source.last_event, true)} UTC`),
              el("td", { class: "n" }, number(source.lines.read, 12)),
              el("td", { class: dropped(source.lines.dropped) ? "warn" : "" }, dropped(source.lines.dropped) || "none"),
              el("td", { class: dropped(source.bytes.lost) ? "warn" : "" }, dropped(source.bytes.lost) || "none"),
            ),
          ),
        ),
      ),
    ),
  );
}
