// Prints the ids of all units that Grafana knows, as a JSON list.
globalThis.navigator = { language: "en", languages: ["en"] }; // a browser's, which the list of date formats asks for
const { getValueFormats } = require("@grafana/data");
console.log(JSON.stringify(getValueFormats().flatMap((group) => group.submenu.map((unit) => unit.value))));
