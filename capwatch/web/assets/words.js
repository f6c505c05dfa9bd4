// Figures for readers, and elements: text only ever becomes text, so no name from a log can become markup.

const SPACE = "\u202f"; // a narrow space that does not break: a figure and its unit stay together

/** Whether a figure is known and more than this. */
export const above = (value, limit) => value !== null && value > limit;

/** A number with so many significant digits, thousands set apart. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(0);
  const fixed = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(fixed, 6), minimumFractionDigits: 0 });
}

/** With exactly so many decimals, so that a column stands in line; a minus is a minus. */
export function fixed(value, decimals) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value
    .toLocaleString("en", { maximumFractionDigits: decimals, minimumFractionDigits: decimals })
    .replace(/^-(?=[0.,]*$)/, "")
    .replace("-", "−");
}

/** With its sign. */
export function signed(value, decimals) {
  const text = fixed(value, decimals);
  return value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

/** A share 0..1 as percent. */
export function percent(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const value = 100 * share;
  const decimals = (value > 0 && value < 0.95) || (value > 99 && value < 99.95) ? 1 : 0;
  return `${fixed(value, decimals)}${SPACE}%`;
}

/** Seconds in the unit that suits their size. */
export function seconds(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value < 0.5e-3) return value > 0 ? `under 1${SPACE}ms` : `0${SPACE}s`;
  if (value < 0.9995) return `${number(1000 * value, value < 0.01 ? 2 : 3)}${SPACE}ms`;
  if (value < 100) return `${number(value, 3)}${SPACE}s`;
  return span(value);
}

/** A length of time, coarsely. */
export function span(value) {
  for (const [size, unit] of [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
  ])
    if (value >= 1.5 * size) return `${number(value / size, value < 10 * size ? 2 : 3)}${SPACE}${unit}`;
  return `${number(value, value < 10 ? 2 : 3)}${SPACE}s`;
}

/** Bytes. */
export function bytes(value) {
  for (const [size, unit] of [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ])
    if (value >= size) return `${number(value / size, 3)}${SPACE}${unit}`;
  return `${number(value, 3)}${SPACE}B`;
}

/** A time of day in the reader's zone, or UTC where the page's sentences need to be compared. */
export function clock(at, withSeconds = false) {
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" };
  if (withSeconds) options.second = "2-digit";
  return new Date(1000 * at).toLocaleTimeString("en", options);
}

/** An element: attributes, then children; a string is text. A class is `class`, a handler `onclick`. */
export function el(name, attributes = {}, ...children) {
  const made = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A figure stays with its percent sign. */
export const together = (text) => text.replace(/(\d) %/g, `$1${SPACE}%`);

/** A sentence, what stands between backticks as code. */
export function sentence(text) {
  return together(text)
    .split("`")
    .map((part, place) => (place % 2 ? el("code", {}, part) : part));
}

/** A table that scrolls in a frame of its own where it is too wide; the headings at some places stand over figures. */
export function framed(attributes, label, headings, figures, rows) {
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    el(
      "table",
      attributes,
      el("caption", {}, label),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          headings.map((name) => el("th", { scope: "col", class: figures.includes(name) ? "n" : null }, name)),
        ),
      ),
      el("tbody", {}, rows),
    ),
  );
}

/** Put children in the place of what is there. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}
