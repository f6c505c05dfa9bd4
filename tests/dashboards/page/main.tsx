// Draws one board with Grafana's own components from answers that are in the page: no Grafana, no network.
// Each panel says in data-state whether it had data or was empty; what a component throws is caught and shown.
import {
  createTheme, dateTime, DataFrame, DisplayProcessor, Field, FieldConfig, FieldType, getDisplayProcessor,
  GrafanaTheme2, renderTextPanelMarkdown, ThemeContext, TimeRange, toDataFrame, VizOrientation,
} from "@grafana/data";
import {
  BarGauge, BarGaugeDisplayMode, BigValue, BigValueColorMode, BigValueGraphMode, BigValueTextMode, GlobalStyles,
  LegendDisplayMode, PanelChrome, PanelContextProvider, TimeSeries,
} from "@grafana/ui";
import * as React from "react";
import { createRoot } from "react-dom/client";

type Series = { name: string; labels: Record<string, string>; refId: string; values: Array<[number, number | null]> };
type Told = { series: Series[] };
type Page = { board: any; answers: Record<string, Series[]>; from: number; to: number };
const page = (window as any).PAGE as Page;
const theme = createTheme({ colors: { mode: new URLSearchParams(location.search).get("theme") === "light" ? "light" : "dark" } });
const COLUMN = 60, LINE = 36, GAP = 6;

// What `applyFieldOverrides` does inside of Grafana: defaults, then the overrides whose matcher fits the name.
function configured(panel: any, name: string): FieldConfig {
  const config = structuredClone(panel.fieldConfig.defaults);
  for (const { matcher, properties } of panel.fieldConfig.overrides) {
    const fits = matcher.id === "byName" ? matcher.options === name : new RegExp(matcher.options).test(name);
    for (const { id, value } of fits ? properties : []) {
      if (id.startsWith("custom.")) { config.custom[id.slice(7)] = value; } else { config[id] = value; }
    }
  }
  return config;
}

function displayed(field: Field): DisplayProcessor {
  return getDisplayProcessor({ field, theme, timeZone: "utc" });
}

function frame(panel: any, one: Series, index: number): DataFrame {
  const made = toDataFrame({
    fields: [
      { name: "Time", type: FieldType.time, values: one.values.map(([at]) => at * 1000), config: {} },
      { name: one.name, type: FieldType.number, values: one.values.map(([, value]) => value), config: configured(panel, one.name) },
    ],
  });
  const [time, value] = made.fields;
  time.display = displayed(time);
  value.state = { seriesIndex: index, displayName: one.name };
  value.config.color ??= { mode: "palette-classic" };
  value.display = displayed(value);
  return made;
}

function Lines({ panel, told, width, height }: any) {
  // What only a running daemon tells lies after the replay: then its own seconds are the range.
  const times: number[] = told.series.flatMap((one: Series) => one.values.map(([at]) => at));
  const inside = times.some((at) => at >= page.from && at <= page.to);
  const span = inside ? [page.from, page.to] : [Math.min(...times), Math.max(...times)];
  const [from, to] = span.map((at) => dateTime(at * 1000));
  const timeRange: TimeRange = { from, to, raw: { from, to } };
  const legend = { displayMode: LegendDisplayMode.List, placement: "bottom" as const, showLegend: true, calcs: [] };
  return (
    <TimeSeries
      frames={told.series.map((one: Series, index: number) => frame(panel, one, index))}
      structureRev={1} timeRange={timeRange} timeZone="utc" width={width} height={height} legend={legend}
    />
  );
}

function values(panel: any, told: Told) {
  return told.series.map((one) => {
    const field: Field = { name: one.name, type: FieldType.number, values: [], config: configured(panel, one.name) };
    const shown = displayed(field)(one.values[one.values.length - 1][1]);
    return { field, shown: { ...shown, title: one.name } };
  });
}

function Numbers({ panel, told, width, height }: any) {
  const all = values(panel, told);
  const textMode = panel.options.textMode === "name" ? BigValueTextMode.Name
    : all.length > 1 ? BigValueTextMode.ValueAndName : BigValueTextMode.Auto;
  return (
    <div style={{ display: "flex" }}>
      {all.map(({ shown }, index) => (
        <BigValue
          key={index} theme={theme} width={width / all.length} height={height} value={shown} textMode={textMode}
          colorMode={BigValueColorMode.Value} graphMode={BigValueGraphMode.None}
        />
      ))}
    </div>
  );
}

function Bars({ panel, told, width, height }: any) {
  const all = values(panel, told);
  const numbers = all.map(({ shown }) => shown.numeric);
  return (
    <div>
      {all.map(({ field, shown }, index) => {
        const config = { min: Math.min(0, ...numbers), max: Math.max(...numbers), ...field.config };
        return (
          <BarGauge
            key={index} theme={theme} width={width} height={height / all.length - 4} field={config} value={shown}
            display={displayed({ ...field, config })} orientation={VizOrientation.Horizontal}
            displayMode={BarGaugeDisplayMode.Basic}
          />
        );
      })}
    </div>
  );
}

// The transformations merge and organize: rows by their labels, a column for each query. Grafana's Table needs more of
// Grafana around it than there is here: cells are plain, their values are shown by Grafana's units.
function Cells({ panel, told, width, height }: any) {
  const { excludeByName, renameByName } = panel.transformations[1].options;
  const rows = new Map<string, Record<string, unknown>>();
  for (const one of told.series as Series[]) {
    const key = JSON.stringify(one.labels);
    const column = renameByName[`Value #${one.refId}`] ?? renameByName.Value;
    rows.set(key, { ...(rows.get(key) ?? one.labels), [column]: one.values[one.values.length - 1][1] });
  }
  const found = [...rows.values()];
  const columns: string[] = Object.values(renameByName);
  const by = panel.options.sortBy[0].displayName;
  found.sort((a: any, b: any) => b[by] - a[by]);
  const names = [...new Set(found.flatMap(Object.keys))].filter((name) => !excludeByName[name]);
  names.sort((a, b) => columns.indexOf(a) - columns.indexOf(b));
  const shown = Object.fromEntries(columns.map((name) => [
    name, displayed({ name, type: FieldType.number, values: [], config: configured(panel, name) }),
  ]));
  const cell = (name: string, value: any) => {
    const told = shown[name]?.(value);
    return told ? `${told.prefix ?? ""}${told.text}${told.suffix ?? ""}` : value;
  };
  return (
    <table style={{ width, maxHeight: height }}>
      <thead><tr>{names.map((name) => <th key={name}>{name}</th>)}</tr></thead>
      <tbody>
        {found.map((row, index) => <tr key={index}>{names.map((name) => <td key={name}>{cell(name, row[name])}</td>)}</tr>)}
      </tbody>
    </table>
  );
}

const KINDS: Record<string, any> = { bargauge: Bars, stat: Numbers, table: Cells, timeseries: Lines };

class Caught extends React.Component<{ name: string; children: React.ReactNode }, { failed: string }> {
  state = { failed: "" };
  static getDerivedStateFromError(error: Error) { return { failed: String(error) }; }
  render() { return this.state.failed ? <pre data-failed={this.props.name}>{this.state.failed}</pre> : this.props.children; }
}

function Drawn({ panel }: { panel: any }) {
  const told = { series: page.answers[panel.id] ?? [] };
  const { x, y, w, h } = panel.gridPos;
  const width = w * COLUMN - GAP, height = h * LINE - GAP;
  const state = panel.type === "text" || told.series.length ? "data" : "empty";
  const Kind = KINDS[panel.type];
  return (
    <div data-panel={panel.title} data-state={state} style={{ position: "absolute", left: x * COLUMN, top: y * LINE, width, height }}>
      <PanelChrome title={panel.title} width={width} height={height}>
        {(innerWidth, innerHeight) => (
          <Caught name={panel.title}>
            {panel.type === "text" ? <div className="markdown-html" dangerouslySetInnerHTML={{ __html: renderTextPanelMarkdown(panel.options.content) }} />
              : state === "data" ? <Kind panel={panel} told={told} width={innerWidth} height={innerHeight} />
              : <div style={{ padding: 12, color: theme.colors.text.secondary }}>{panel.fieldConfig.defaults.noValue || "No data"}</div>}
          </Caught>
        )}
      </PanelChrome>
    </div>
  );
}

function Row({ panel }: { panel: any }) {
  return <h4 style={{ position: "absolute", left: 0, top: panel.gridPos.y * LINE }}>{panel.title}</h4>;
}

function Board() {
  const down = Math.max(...page.board.panels.map((panel: any) => panel.gridPos.y + panel.gridPos.h));
  return (
    <ThemeContext.Provider value={theme as GrafanaTheme2}>
      <GlobalStyles />
      <PanelContextProvider value={{ eventsScope: "board", eventBus: { publish() {}, getStream: () => ({ subscribe: () => ({ unsubscribe() {} }), pipe() { return this; } }), subscribe: () => ({ unsubscribe() {} }), removeAllListeners() {}, newScopedBus() { return this; } } as any }}>
        <div style={{ position: "relative", width: 24 * COLUMN, height: down * LINE, margin: 8 }}>
          {page.board.panels.map((panel: any) => panel.type === "row" ? <Row key={panel.id} panel={panel} /> : <Drawn key={panel.id} panel={panel} />)}
        </div>
      </PanelContextProvider>
    </ThemeContext.Provider>
  );
}

createRoot(document.getElementById("board")!).render(<Board />);

// What became of each panel, for the test that reads the console.
setTimeout(() => {
  const drawn: Record<string, unknown> = {};
  document.querySelectorAll<HTMLElement>("[data-panel]").forEach((panel) => {
    drawn[panel.dataset.panel!] = {
      state: panel.dataset.state,
      failed: panel.querySelector("[data-failed]")?.textContent ?? "",
      canvases: panel.querySelectorAll("canvas").length,
      text: panel.innerText.slice(0, 300),
    };
  });
  console.log("DRAWN " + JSON.stringify(drawn));
}, 4000);
