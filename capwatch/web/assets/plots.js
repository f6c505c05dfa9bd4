// Plots over time, drawn by uPlot: one axis of time for all, and a cursor that is in all of them at once.

import { data, FIGURES, newest, range } from "./figures.js";
import { clock, el, fill } from "./words.js";

const HEIGHT = 150;
const sync = "capwatch";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** All figures of one pool. */
export class Plots {
  #parent;
  #drawn = [];
  #key = "";

  constructor(parent) {
    this.#parent = parent;
    new ResizeObserver(() =>
      this.#drawn.forEach(({ plot, box }) => plot.setSize({ width: box.clientWidth, height: HEIGHT })),
    ).observe(parent);
  }

  /** Draw anew in other colours. */
  recolour() {
    this.#key = "";
  }

  show(history, pool, drifts, stretch) {
    const told = history.pools[pool.name];
    const marks = this.#marks(history, pool, drifts);
    const figures = FIGURES.map((figure) => ({
      figure,
      data: told ? data(figure, history, told, pool, stretch) : null,
    })).filter((one) => one.data !== null);
    const key = JSON.stringify([pool.name, figures.map(({ figure, data: { names } }) => [figure.id, names])]);
    if (!figures.length) return this.#nothing();
    if (!window.uPlot) return this.#plain(figures);
    if (key !== this.#key) this.#build(figures, key);
    figures.forEach(({ figure, data: { columns, tops, label, ends } }, place) => {
      const one = this.#drawn[place];
      one.marks = marks;
      one.columns = columns; // first, for the legend is written from them
      one.plot.setData(tops ?? columns, false);
      one.plot.setScale("x", { min: ends[0], max: ends[1] });
      one.label = label;
      one.box.setAttribute("aria-label", `${figure.title}: ${label}`);
      one.now.textContent = label;
    });
  }

  /** When the active drift began, and what somebody noted. */
  #marks(history, pool, drifts) {
    const began = drifts.active
      .filter((event) => event.pool === pool.name)
      .map((event) => ({ at: event.started_at, text: "change", kind: "bad" }));
    const notes = history.notes
      .filter((note) => note.pool === null || note.pool === pool.name)
      .map((note) => ({ at: note.at, text: note.text, kind: "note" }));
    return [...began, ...notes];
  }

  #nothing() {
    this.#clear();
    fill(
      this.#parent,
      el("p", { class: "dim" }, "Nothing to draw yet: the first plot comes a minute after the first requests."),
    );
  }

  /** Without the library: bare lines, no cursor and no marks. */
  #plain(figures) {
    this.#clear();
    fill(
      this.#parent,
      figures.map(({ figure, data }) =>
        el(
          "figure",
          {},
          el("figcaption", {}, el("span", {}, figure.title), el("span", { class: "dim now" }, data.label)),
          sketch(figure, data),
        ),
      ),
      el(
        "p",
        { class: "dim" },
        "Plain lines: this build lacks uPlot, which npm fetches; docs/page.md says how to add it.",
      ),
    );
  }

  #clear() {
    this.#drawn.forEach(({ plot }) => plot.destroy());
    this.#drawn = [];
    this.#key = "";
  }

  #build(figures, key) {
    this.#clear();
    this.#key = key;
    fill(
      this.#parent,
      figures.map(({ figure, data: { names } }) => {
        const box = el("div", { class: "plot", role: "img" });
        const now = el("span", { class: "dim now" });
        this.#drawn.push({ box, now, names, kind: figure, marks: [], columns: [] });
        return el(
          "figure",
          { id: `plot-${figure.id}` },
          el("figcaption", {}, el("span", {}, figure.title), now),
          box,
        );
      }),
    );
    for (const one of this.#drawn)
      one.plot = new window.uPlot(options(one), one.names.map(() => []).concat([[]]), one.box);
  }
}

/** The lines of a figure without scales; its ends in words. */
function sketch(figure, { columns, tops, names, ends, label }) {
  const [times, ...lines] = tops ?? columns;
  const values = lines.flat().filter((value) => value !== null);
  const [low, high] = range(figure, Math.min(...values), Math.max(...values));
  const place = (value, index) =>
    `${((times[index] - ends[0]) / (ends[1] - ends[0])) * 300},${100 - ((value - low) / (high - low)) * 100}`;
  const drawn = lines.map((line, index) =>
    el("svg:polyline", {
      points: line
        .map((value, at) => (value === null || times[at] < ends[0] ? null : place(value, at)))
        .filter((point) => point !== null)
        .join(" "),
      class: figure.stacked ? `phase-${names[index][0]}` : `line-${index + 1}`,
      "vector-effect": "non-scaling-stroke",
    }),
  );
  return el(
    "div",
    { class: "plot", role: "img", "aria-label": `${figure.title}: ${label}` },
    el(
      "svg:svg",
      { viewBox: "0 0 300 100", preserveAspectRatio: "none", class: "sketch", "aria-hidden": "true" },
      drawn,
    ),
    el(
      "p",
      { class: "dim ends" },
      `${clock(ends[0])} to ${clock(ends[1])} UTC, ${figure.form(low)} to ${figure.form(high)}`,
    ),
  );
}

function options(one) {
  const { kind, names, box } = one;
  const axis = {
    stroke: colour("dim"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  const drawn = (name, place) => (kind.stacked ? `phase-${name}` : place ? "line-2" : "line-1");
  const series = names.map(([name, style], place) => ({
    label: name,
    stroke: style === "dashed" ? colour("dim") : colour(drawn(name, place)),
    fill: kind.stacked ? colour(drawn(name, place)) : undefined,
    width: kind.stacked ? 0 : 2,
    dash: style === "dashed" ? [5, 5] : undefined,
    points: { show: false },
    value: (_, value, series, index) =>
      kind.form((index === null ? newest(one.columns[series]) : one.columns[series]?.[index]) ?? null),
  }));
  return {
    width: box.clientWidth || 300,
    height: HEIGHT,
    legend: { live: true, show: names.length > 1 },
    cursor: { y: false, sync: { key: sync }, points: { show: !kind.stacked }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (_, low, high) => range(kind, low, high) } },
    tzDate: (at) => window.uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"),
    axes: [
      { ...axis, size: 26, values: (_, ticks) => ticks.map((at) => clock(at)), space: 60 },
      { ...axis, size: 54, values: (_, ticks) => ticks.map((tick) => kind.form(tick)) },
    ],
    series: [{ label: "UTC", value: (_, at) => (at === null ? "–" : clock(at)) }, ...series],
    bands: kind.stacked ? names.slice(1).map((_, place) => ({ series: [place + 2, place + 1] })) : undefined,
    hooks: { draw: [(plot) => mark(plot, one.marks, kind)], setCursor: [(plot) => point(plot, one)] },
  };
}

/** What the cursor is at, in the place of the newest figures. */
function point(plot, one) {
  const { idx } = plot.cursor;
  const at = idx === null || idx === undefined ? undefined : one.columns[0]?.[idx];
  const single = one.names.length === 1 ? ` ${one.kind.form(one.columns[1]?.[idx] ?? null)}` : "";
  one.now.textContent = at === undefined ? (one.label ?? "") : `${clock(at)}${single}`;
}

/** Lines through the plot at moments that matter. */
function mark(plot, marks, figure) {
  const { ctx, bbox } = plot;
  const ratio = window.devicePixelRatio || 1;
  for (const { at, text, kind } of marks) {
    const x = plot.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour(kind === "bad" ? "bad" : "dim");
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    const right = x > bbox.left + 0.7 * bbox.width;
    ctx.textAlign = right ? "right" : "left";
    ctx.fillText(
      text.length > 40 ? `${text.slice(0, 39)}…` : text,
      x + (right ? -4 : 4) * ratio,
      bbox.top + (figure.most ? bbox.height - 4 * ratio : 10 * ratio),
    );
    ctx.restore();
  }
}
