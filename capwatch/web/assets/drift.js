// The active drift: from what was expected, by effects, to what it is now; and who adds how much.

import { clock, el, fill, fixed, percent, signed } from "./words.js";

const EFFECTS = {
  mix: ["mix", "other requests"],
  prompt: ["prompts", "their length"],
  output: ["answers", "their length"],
  cache: ["cache", "prefix hits"],
};
const MOST = 9;
const LEAST = 0.1; // of the largest part: less is noise to whoever is on call

/** Decimals that show a hundredth of the cost. */
const decimals = (cost) => (cost >= 10 ? 1 : cost >= 0.1 ? 2 : 4);

/** Whether a figure is more than nothing, as it is written. */
const told = (value, places) => Math.abs(value) >= 0.5 * 10 ** -places;

/** A bar from one value to another on a scale from 0 to ``most``. */
function bar(from, to, most, kind) {
  const left = (100 * Math.min(from, to)) / most;
  const width = Math.max(0.6, (100 * Math.abs(to - from)) / most);
  return el(
    "svg:svg",
    { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    el("svg:rect", { x: left, y: 0, width, height: 10, class: kind }),
  );
}

/** The effects as a waterfall: a table, so that it can be read aloud. */
function waterfall(event) {
  const { cost_before: before, cost_after: after, effects } = event;
  let reached = before;
  const steps = Object.keys(EFFECTS).map((name) => ({ name, from: reached, to: (reached += effects[name]) }));
  const most = 1.02 * Math.max(before, after, ...steps.flatMap((step) => [step.from, step.to]));
  const places = decimals(Math.max(before, after));
  const row = (label, meaning, figure, drawn, strong) =>
    el(
      "tr",
      { class: strong ? "total" : null },
      el("th", { scope: "row" }, label, el("span", { class: "dim share" }, ` ${meaning}`)),
      el("td", { class: "drawn" }, drawn),
      el("td", { class: "n" }, figure),
    );
  return el(
    "table",
    { class: "waterfall" },
    el("caption", {}, "Replica-seconds per request: how long it keeps one replica busy"),
    el(
      "tbody",
      {},
      row(
        "expected",
        "by history",
        fixed(before, places),
        bar(0, before, most, "before"),
        true,
      ),
      steps.map(({ name, from, to }) =>
        row(
          EFFECTS[name][0],
          EFFECTS[name][1],
          signed(to - from, places),
          bar(from, to, most, !told(to - from, places) ? "none" : to > from ? "more" : "less"),
        ),
      ),
      row("now", "since then", fixed(after, places), bar(0, after, most, "after"), true),
    ),
  );
}

/** Who: the largest contributions, each tenant, route and class by itself. */
function contributions(event) {
  const places = decimals(Math.max(event.cost_before, event.cost_after));
  const most = Math.max(...event.contributions.map((one) => Math.abs(one.replica_seconds)));
  const stands = ({ replica_seconds: part }) => told(part, places) && Math.abs(part) >= LEAST * most;
  const found = event.contributions.filter(stands).slice(0, MOST);
  if (!found.length) return el("p", { class: "dim" }, "No single tenant, route or class stands out.");
  return el(
    "table",
    { class: "waterfall who" },
    el("caption", {}, "Who adds it: tenants, routes and classes are three views of the same requests"),
    el(
      "tbody",
      {},
      found.map((one) =>
        el(
          "tr",
          {},
          el(
            "th",
            { scope: "row" },
            el("span", { class: "dim" }, `${one.dimension} `),
            one.value,
            el(
              "span",
              { class: "dim share" },
              ` ${EFFECTS[one.effect]?.[0] ?? one.effect}`,
              one.share_after === undefined
                ? null
                : `, ${percent(one.share_before)} → ${percent(one.share_after)} of requests`,
            ),
          ),
          el(
            "td",
            { class: "drawn" },
            bar(0, Math.abs(one.replica_seconds), most, one.replica_seconds >= 0 ? "more" : "less"),
          ),
          el("td", { class: "n" }, signed(one.replica_seconds, places)),
        ),
      ),
    ),
  );
}

/** The event with the figures of now; shares of requests are known of those that the alarm named. */
function byNow(event, drift) {
  const same = (one) => (other) => ["dimension", "value", "effect"].every((key) => one[key] === other[key]);
  const parts = drift.contributions.map((one) => ({ ...event.contributions.find(same(one)), ...one }));
  return { ...event, ...drift, contributions: parts };
}

/** The last events, newest first. */
function past(drifts, pool) {
  const present = new Set(drifts.active.map((event) => `${event.pool} ${event.at}`));
  const mine = drifts.events
    .filter((event) => event.pool === pool && !present.has(`${event.pool} ${event.at}`))
    .slice(-5)
    .reverse();
  if (!mine.length) return null;
  return el(
    "details",
    {},
    el("summary", {}, `Drifts of the past (${mine.length})`),
    el(
      "ul",
      {},
      mine.map((event) =>
        el("li", {}, el("span", { class: "dim" }, `${day(event.at)} ${clock(event.at)} `), event.sentence),
      ),
    ),
  );
}

const day = (at) => new Date(1000 * at).toISOString().slice(0, 10);

/** Fill the section for one pool. */
export function showDrift(section, drifts, pool) {
  const active = drifts.active
    .filter((event) => event.pool === pool.name)
    .map((event, place) => (place === 0 && pool.drift ? byNow(event, pool.drift) : event));
  const body = section.querySelector("#drift-body");
  section.classList.toggle("active", active.length > 0);
  const before = past(drifts, pool.name);
  const open = body.querySelector("details")?.open;
  if (active.length) {
    fill(
      body,
      active.map((event) => el("div", { class: "pair" }, waterfall(event), contributions(event))),
      before,
    );
  } else {
    fill(body, el("p", {}, quiet(pool)), before);
  }
  if (open) body.querySelector("details")?.setAttribute("open", "");
}

function quiet(pool) {
  if (pool.learning)
    return "Less than three days of history: what is usual is still being learnt, and only a rise of 25 % over ten minutes would be told.";
  if (pool.cost === null) return "No request tells its tokens, so there is no cost to watch.";
  if (pool.cost_reference === null) return "Not looked at yet.";
  const places = decimals(pool.cost);
  return `Nothing. A request takes ${fixed(pool.cost, places)} replica-seconds; ${fixed(pool.cost_reference, places)} are expected of these tenants and classes at this hour.`;
}
