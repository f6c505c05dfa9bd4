// Percentiles by tenant and route: sorted by any column, filtered by a word, by mouse or keyboard.

import { el, fill, fixed, percent, seconds } from "./words.js";

const tokens = (value) => fixed(value, 0);
const rate = (value) => fixed(value, value < 0.1 ? 3 : 2);

const COLUMNS = {
  tenant: ["tenant", null],
  route: ["route", null],
  rate: ["req/s", rate],
  cost_share: ["share of work", percent],
  cost: ["work per req (s)", (v) => fixed(v, 2)],
  goodput: ["good", percent],
  ok: ["ended well", percent],
  prompt_tokens_p50: ["prompt p50", tokens],
  prompt_tokens_p95: ["prompt p95", tokens],
  prompt_tokens_p99: ["prompt p99", tokens],
  output_tokens_p50: ["output p50", tokens],
  output_tokens_p95: ["output p95", tokens],
  output_tokens_p99: ["output p99", tokens],
  ttft_s_p50: ["TTFT p50", seconds],
  ttft_s_p95: ["TTFT p95", seconds],
  tpot_s_p95: ["TPOT p95", seconds],
  duration_s_p95: ["duration p95", seconds],
};
const TITLES = {
  cost_share: "Replica-seconds of all requests that this row takes",
  cost: "Replica-seconds per request",
  goodput: "Requests that met every target, of those that could be judged",
  ok: "Requests without error, refusal or abort",
  prompt_tokens_p50: "Prompt tokens, cached ones too",
  ttft_s_p50: "Time to first token",
  tpot_s_p95: "Time per output token",
};
const MOST = 200; // rows that are drawn; a filter finds the others

/** One table; it keeps what it is sorted by and filtered with over all updates. */
export class Who {
  #table;
  #note;
  #told = { columns: [], rows: [], more: 0 };
  #by = "cost_share";
  #down = true;
  #words = "";
  #pool = "";
  #heads = {};
  #body = el("tbody");

  constructor(table, note, filter) {
    this.#table = table;
    this.#note = note;
    const head = el(
      "tr",
      {},
      Object.entries(COLUMNS).map(([key, [label, form]]) => this.#head(key, label, form)),
    );
    fill(
      table,
      el("caption", { class: "unseen" }, "Percentiles by tenant and route"),
      el("thead", {}, head),
      this.#body,
    );
    filter.addEventListener("input", () => {
      this.#words = filter.value.trim().toLowerCase();
      this.draw();
    });
  }

  #head(key, label, form) {
    const button = el("button", { type: "button", title: TITLES[key], onclick: () => this.#sort(key) }, label);
    this.#heads[key] = el("th", { scope: "col", class: form ? "n" : null }, button);
    return this.#heads[key];
  }

  #sort(key) {
    this.#down = this.#by === key ? !this.#down : COLUMNS[key][1] !== null; // figures begin with the largest, names with a
    this.#by = key;
    this.draw();
  }

  show(recent, pool) {
    this.#told = recent;
    this.#pool = pool;
    this.draw();
  }

  draw() {
    const { columns, more, since, until } = this.#told;
    const place = Object.fromEntries(columns.map((name, index) => [name, index]));
    const mine = this.#told.rows.filter((row) => row[place.pool] === this.#pool);
    const fits = (row) => `${row[place.tenant]} ${row[place.route]}`.toLowerCase().includes(this.#words);
    const found = mine.filter(fits).sort(this.#order(place[this.#by]));
    for (const [key, head] of Object.entries(this.#heads)) {
      if (key === this.#by) head.setAttribute("aria-sort", this.#down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    fill(
      this.#body,
      found.slice(0, MOST).map((row) =>
        el(
          "tr",
          {},
          Object.entries(COLUMNS).map(([key, [, form]]) => {
            const value = row[place[key]];
            if (key === "tenant") return el("th", { scope: "row" }, value);
            return form ? el("td", { class: "n" }, form(value)) : el("td", {}, value);
          }),
        ),
      ),
    );
    const parts = [`${found.length} of ${mine.length} rows`];
    if (since !== null && since !== undefined)
      parts.push(`requests that finished in the last ${Math.round((until - since) / 60)} min`);
    if (found.length > MOST) parts.push(`the first ${MOST} are shown`);
    if (more) parts.push(`${more} cheaper rows are left out`);
    const text = mine.length ? `${parts.join(" · ")}.` : "No request has finished in the last minutes.";
    if (this.#note.textContent !== text) this.#note.textContent = text;
    this.#table.hidden = !mine.length;
  }

  /** Rows by one column; what is not known comes last, whichever way. */
  #order(column) {
    const way = this.#down ? -1 : 1;
    return (one, other) => {
      const [a, b] = [one[column], other[column]];
      if (a === b) return 0;
      if (a === null) return 1;
      if (b === null) return -1;
      return way * (typeof a === "string" ? a.localeCompare(b) : a - b);
    };
  }
}
