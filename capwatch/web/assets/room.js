// Is there room: the promises of the pool, its KV memory, and its replicas.

import { above, el, fill, fixed, framed, number, percent, span } from "./words.js";

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

/** What running requests may need of the KV memory, and when that is all there is. */
function memory(pool, told) {
  if (pool.kv_demand_ratio === null)
    return "KV memory is not judged: no engine tells its size and kv_pool_tokens is not configured, or no request tells its tokens.";
  const room = pool.kv_room === null ? "" : `, ${number(pool.kv_demand_ratio * pool.kv_room)} of ${number(pool.kv_room)} tokens`;
  return `KV memory: running requests may need ${percent(pool.kv_demand_ratio)}${room}. ${trend(told)}`;
}

function trend(told) {
  if (!told || told.kv_growth === null) return "When it is full is told once a quarter of an hour is known.";
  const growth = `${told.kv_growth < 0 ? "It falls" : "It grows"} by ${number(Math.abs(told.kv_growth) * 60, 2)} tokens a minute`;
  if (told.kv_full_s === 0) return "By its trend it is full now.";
  if (told.kv_growth > 0 && !told.kv_steady)
    return `${growth} (last 15 min), but not all the time: when it is full cannot be told.`;
  const end = told.kv_full_s === null ? "it is not full within an hour" : `it is full in ${span(told.kv_full_s)}`;
  return `${growth} (last 15 min): at this trend ${end}.`;
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
  const rows = [...pool.engines].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  return framed(
    { class: "engines" },
    "Replicas as they last told",
    ["replica", "KV memory", "running", "waiting", "preempted"],
    ["running", "waiting", "preempted"],
    rows.map((one) => engine(pool, one)),
  );
}

function engine(pool, one) {
  const key = `${pool.name}\n${one.name}`;
  if (!opened.has(key)) opened.set(key, one.preemptions);
  const fresh = one.preemptions - opened.get(key);
  const share = one.kv_utilisation;
  const silent = one.state === "unknown" ? el("span", { class: "warn" }, " silent") : null;
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, one.name, silent),
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
}

export function showRoom(parent, pool, history) {
  const left = [promises(pool), el("p", {}, memory(pool, history.pools[pool.name]))];
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
