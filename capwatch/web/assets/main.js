// The page keeps itself fresh: it asks the daemon every few seconds and says so when no answer comes.

import { showDrift } from "./drift.js";
import { Plots } from "./plots.js";
import { showRoom } from "./room.js";
import { showSources } from "./sources.js";
import { Who } from "./table.js";
import { showTiles } from "./tiles.js";
import { clock, el, fill, sentence, span, together } from "./words.js";

const NOW_MS = 5000; // the daemon makes these anew at most every second
const RECENT_MS = 10000;
const HISTORY_MS = 30000; // the finest it tells is a minute
const PATIENCE_MS = 10000;
const YOUNG_S = 1500; // a drift of so many seconds is a needle on a plot of hours

const $ = (id) => document.getElementById(id);
const told = { status: null, drift: { active: [], events: [] }, now: null, recent: null, history: null };
const asked = { recent: 0, history: 0 };
const plots = new Plots($("plots"));
const who = new Who($("who"), $("who-note"), $("filter"));
let chosen = null; // the pool that somebody chose
let ranged = false; // whether somebody chose the stretch of time
let failing = null; // since when no answer has come

async function ask(name) {
  // The origin, since an address with a name and password in it is none that a script may ask.
  const answer = await fetch(`${location.origin}/api/v1/${name}`, {
    signal: AbortSignal.timeout(PATIENCE_MS),
    cache: "no-store",
  });
  if (!answer.ok) throw new Error(`${answer.status}`);
  told[name] = await answer.json();
}

async function refresh() {
  const at = Date.now();
  const names = ["status", "drift", "now"];
  if (at - asked.recent >= RECENT_MS) names.push("recent");
  if (at - asked.history >= HISTORY_MS) names.push("history");
  try {
    await Promise.all(names.map(ask));
    for (const name of names) if (name in asked) asked[name] = at;
    failing = null;
  } catch {
    failing ??= at;
  }
  age();
  if (failing === null) show();
}

/** What there is to say, worst first: of now, and what only the history tells. */
function findings() {
  const rank = ({ severity }) => ["bad", "warn", "note", "good"].indexOf(severity);
  return [...told.now.findings, ...told.history.findings].sort((a, b) => rank(a) - rank(b));
}

/** The pool to show: the chosen one, else the one that the worst finding is about, else the busiest. */
function pool() {
  const { pools } = told.now;
  const about = findings().find((finding) => finding.pool !== null)?.pool;
  const busiest = [...pools].sort((a, b) => b.rate - a.rate)[0];
  return pools.find((one) => one.name === chosen) ?? pools.find((one) => one.name === about) ?? busiest ?? null;
}

function show() {
  const { status, drift, recent, history } = told;
  const [first, ...others] = findings();
  say(first, others);
  const one = pool();
  showPools(one);
  $("live").hidden = false;
  for (const id of ["tiles", "drift", "time", "replicas", "asks"]) $(id).hidden = one === null;
  if (one !== null) {
    showTiles($("tiles"), one, history, [first, ...others]);
    showDrift($("drift"), drift, one);
    showRoom($("room"), one, history);
    who.show(recent, one.name);
    showHistory();
  }
  showSources($("sources"), status);
  document.documentElement.dataset.updates = Number(document.documentElement.dataset.updates ?? 0) + 1;
}

function showHistory() {
  const { history, drift } = told;
  const one = told.now === null ? null : pool();
  $("history-problem").hidden = history.problem === null;
  $("history-problem").textContent = history.problem ?? "";
  if (one === null) return;
  if (!ranged) suit(one);
  plots.show(history, one, drift, Number(document.querySelector("input[name=range]:checked").value));
}

/** The stretch that shows a young drift best, until somebody chooses another. */
function suit(one) {
  const began = Math.max(
    0,
    ...told.drift.active.filter((event) => event.pool === one.name).map((event) => event.started_at),
  );
  const young = told.now.clock !== null && told.now.clock - began < YOUNG_S;
  document.querySelector(`input[name=range][value="${young ? 1800 : 21600}"]`).checked = true;
}

/** The sentence is only touched when it changes: a screen reader says it then. */
function say(first, others) {
  const answer = $("answer");
  answer.className = first.severity;
  const text = together(first.text);
  if ($("sentence").textContent !== text) $("sentence").textContent = text;
  $("why").textContent = first.why;
  const steps = first.todo.map((step) => el("li", {}, sentence(step)));
  fill($("todo"), steps.length ? [el("h2", {}, "What to do first, and how soon it helps"), el("ol", {}, steps)] : []);
  fill(
    $("others"),
    others.map((one) =>
      el(
        "li",
        { class: one.severity },
        together(one.text),
        one.todo.length ? el("span", { class: "dim" }, " ", sentence(one.todo[0])) : null,
      ),
    ),
  );
  const sign = { bad: "● ", warn: "▲ " }[first.severity] ?? "";
  document.title = `${sign}${first.kind === "quiet" ? "" : `${first.text.slice(0, 60)} – `}capwatch`;
}

function showPools(one) {
  const { pools } = told.now;
  const parent = $("pools");
  parent.hidden = pools.length < 2;
  const names = pools.map((pool) => pool.name).join("\n");
  if (parent.dataset.names !== names) {
    parent.dataset.names = names;
    fill(
      parent,
      pools.map(({ name }) =>
        el(
          "button",
          {
            type: "button",
            "data-pool": name,
            onclick: () => {
              chosen = name;
              show();
            },
          },
          name,
        ),
      ),
    );
  }
  for (const button of parent.children) button.setAttribute("aria-pressed", String(button.dataset.pool === one?.name));
}

function age() {
  const committed = told.status?.commit.timestamp ?? null;
  const line = $("age");
  line.classList.toggle("bad", failing !== null);
  document.documentElement.classList.toggle("stale", failing !== null);
  if (failing !== null)
    line.textContent = `capwatch has not answered for ${span((Date.now() - failing) / 1000 + NOW_MS / 1000)}: what is shown is old`;
  else if (committed !== null) line.textContent = `as of ${clock(committed, true)} UTC`;
}

const THEMES = ["auto", "light", "dark"];

function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  const button = $("theme");
  button.hidden = false;
  button.textContent = `Colours: ${name}`;
  button.onclick = () => {
    const next = THEMES[(THEMES.indexOf(name) + 1) % THEMES.length];
    try {
      localStorage.setItem("theme", next);
    } catch {
      /* a browser may keep nothing */
    }
    theme(next);
    recolour();
  };
}

function recolour() {
  plots.recolour();
  if (told.history !== null) showHistory();
}

function kept() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}

theme(THEMES.includes(kept()) ? kept() : "auto");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
$("range").addEventListener("change", () => {
  ranged = true;
  showHistory();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
(async function keepFresh() {
  if (!document.hidden || told.now === null) await refresh();
  setTimeout(keepFresh, NOW_MS);
})();
