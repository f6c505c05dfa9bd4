// The figures of a pool at a glance.

import { above, el, fill, fixed, number, percent, seconds, span } from "./words.js";

/** A figure with what it means. */
const tile = (label, figure, note, kind) =>
  el(
    "div",
    { class: `tile ${kind ?? ""}` },
    el("dt", {}, label),
    el("dd", {}, el("b", {}, figure), el("span", { class: "dim" }, note ?? "")),
  );

const sum = (values) => Object.values(values).reduce((total, value) => (value === null ? total : total + value), 0);

export function showTiles(list, pool, history, findings) {
  const told = history?.pools[pool.name];
  const good = told?.goodput.findLast((value) => value !== null) ?? null;
  const spare = pool.headroom.none;
  const short = findings.find((one) => one.kind === "kv" && one.pool === pool.name);
  const known = Object.values(pool.in_flight).some((value) => value !== null);
  const change = pool.cost !== null && pool.cost_reference ? pool.cost / pool.cost_reference - 1 : null;
  fill(
    list,
    tile("Requests", `${number(pool.rate)}/s`, "last 5 min"),
    tile(
      "Work per request",
      pool.cost === null ? "–" : `${fixed(pool.cost, pool.cost < 0.1 ? 4 : 2)} s`,
      change === null ? "replica-seconds" : `last 5 min: ${change >= 0 ? "+" : "−"}${percent(Math.abs(change))}`,
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
    tile("KV memory", percent(pool.kv_demand_ratio), kvLeft(pool, told), short?.severity),
  );
}

/** How long KV memory lasts, in few words. */
function kvLeft(pool, told) {
  if (pool.kv_demand_ratio === null) return "size not known";
  if (!told || told.kv_growth === null) return "trend not known yet";
  if (told.kv_full_s === null) return told.kv_growth > 0 && !told.kv_steady ? "no steady growth" : "not full within 1 h";
  return told.kv_full_s === 0 ? "full" : `full in ${span(told.kv_full_s)}`;
}
