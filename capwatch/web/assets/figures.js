// What the plots show: six figures of a pool, each with its unit, its lines and its range.

import { number, percent, seconds } from "./words.js";

const PHASES = ["gateway", "retrieval", "tool", "queue", "prefill", "decode", "other"];
const EXPECTED = "expected now";

/** What is drawn: title, unit of the axis, and the lines of a pool. */
export const FIGURES = [
  {
    id: "rate",
    title: "Requests per second",
    form: number,
    minutes: true,
    zero: true,
    lines: (h) => [["requests/s", h.rate]],
  },
  {
    id: "cost",
    title: "Replica-seconds per request",
    form: number,
    minutes: true,
    zero: true,
    lines: (h, pool) => [
      ["work", h.cost],
      [EXPECTED, pool.cost_reference === null ? null : h.cost.map(() => pool.cost_reference), "dashed"],
    ],
  },
  {
    id: "inflight",
    title: "Requests in flight, by phase",
    form: number,
    zero: true,
    stacked: true,
    lines: (h) => PHASES.map((phase) => [phase, h.in_flight[phase]]),
  },
  {
    id: "goodput",
    title: "Good requests (met every target)",
    form: percent,
    most: 1,
    lines: (h) => [["good", h.goodput]],
  },
  {
    id: "ttft",
    title: "Time to first token",
    form: seconds,
    zero: true,
    lines: (h) => [
      ["p50", h.ttft_p50],
      ["p95", h.ttft_p95],
    ],
  },
  {
    id: "kv",
    title: "KV memory that may be needed",
    form: percent,
    zero: true,
    lines: (h) => [["demand", h.kv_demand]],
  },
];
const known = (list) => list !== null && list !== undefined && list.some((value) => value !== null);
/** The last value that is known. */
export const newest = (list) => list?.findLast((value) => value !== null);

/** The columns of a figure, cut to the stretch; null where nothing of it is known. */
export function data(figure, history, told, pool, stretch) {
  const lines = figure.lines(told, pool).filter(([, values]) => known(values));
  if (!lines.length || (figure.id === "cost" && lines[0][0] !== "work")) return null;
  const [begin, step] = figure.minutes ? [history.minutes, history.minute_s] : [history.slots, history.slot_s];
  const length = Math.max(...lines.map(([, values]) => values.length));
  const end = Math.max(
    history.minutes + history.minute_s * told.rate.length,
    history.slots + history.slot_s * told.goodput.length - history.slot_s,
  );
  const kept = figure.stacked ? lines.filter(([, values]) => values.some((value) => value > 0)) : lines;
  const first = Math.max(0, Math.floor((end - stretch - begin) / step) - 1);
  const times = Array.from({ length: length - first }, (_, index) => begin + (first + index + 0.5) * step);
  const columns = [times, ...kept.map(([, values]) => values.slice(first))];
  const last = kept.map(([name, values]) => [name, newest(values)]);
  const [name, value] = figure.stacked
    ? ["", last.reduce((sum, [, one]) => sum + (one ?? 0), 0)]
    : last.findLast(([one]) => one !== EXPECTED);
  const label = `now ${name.startsWith("p") ? `${name} ` : ""}${figure.form(value)}`;
  return {
    columns,
    tops: figure.stacked ? stacked(columns) : null,
    names: kept.map(([name, , style]) => [name, style ?? ""]),
    label,
    ends: [end - stretch, end],
  };
}

/** Columns that stand on each other, the last one on top. */
function stacked([times, ...columns]) {
  const tops = [];
  let below = times.map(() => 0);
  for (const column of columns) {
    below = column.map((value, index) => (value === null ? below[index] : below[index] + value));
    tops.push(column.every((value) => value === null) ? column : below);
  }
  const gaps = times.map((_, index) => columns.every((column) => column[index] === null));
  return [times, ...tops.map((top) => top.map((value, index) => (gaps[index] ? null : value)))];
}
/** From 0 where that is a quantity's end; a share up to 1, and no closer than a tenth. */
export function range(kind, low, high) {
  if (low === null || high === null) return [0, 1];
  if (kind.most) return [Math.min(0.9, Math.floor(low * 20) / 20), kind.most];
  return [kind.zero ? 0 : low, high * 1.2 || 1];
}
