"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const AXES = {
  round: "rounds",
  transmitted: "models transmitted, relative to one round of FedAvg",
  bytes: "bytes sent up and down",
  gradients: "gradients of samples",
};
const BUTTONS = { round: "rounds", transmitted: "transmissions", bytes: "bytes", gradients: "gradients" };
const state = { group: 0, axis: "round" };
const byId = (id) => document.getElementById(id);

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function runsOfGroup() {
  const wanted = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const said = (run) =>
    [run.label, `seed ${run.seed}`, run.status, ...Object.entries(run.values).flat()].join(" ").toLowerCase();
  const runs = data.groups[state.group].runs.map((number) => data.runs[number]);
  return runs.filter((run) => wanted.every((word) => said(run).includes(word)));
}

// The mean of the runs of one label at every evaluated round that any of them reached, and the range of their figures.
function band(runs, metric) {
  const points = runs.map((run) =>
    run.series[metric].map((y, i) => [run.series[state.axis][i], y]).filter(([, y]) => y !== null),
  );
  const rows = Array.from({ length: Math.max(...points.map((p) => p.length)) }, (_, i) => points.flatMap((p) => p.slice(i, i + 1)));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const figures = rows.map((row) => row.map(([, y]) => y));
  return {
    x: rows.map((row) => mean(row.map(([x]) => x))),
    mean: figures.map(mean),
    least: figures.map((ys) => Math.min(...ys)),
    most: figures.map((ys) => Math.max(...ys)),
  };
}

function bandTraces(runs, metric, colorway) {
  const labels = [...new Set(runs.map((run) => run.label))];
  return labels.flatMap((label, place) => {
    const mine = runs.filter((run) => run.label === label);
    const { x, mean, least, most } = band(mine, metric);
    const color = data.colors[label] ?? colorway[place % colorway.length];
    const edge = { x, mode: "lines", line: { width: 0, color }, hoverinfo: "skip", showlegend: false, legendgroup: label };
    const line = { x, y: mean, name: label, mode: "lines", line: { color, width: 1.8 }, legendgroup: label };
    if (mine.length === 1) return [line];
    return [{ ...edge, y: least }, { ...edge, y: most, fill: "tonexty", fillcolor: `${color}33` }, line];
  });
}

function draw() {
  const runs = runsOfGroup();
  const metric = byId("metric").value;
  const several = new Set(runs.map((run) => run.seed)).size > 1;
  const colorway = ["#7b4ea3", "#e07b39", "#17a2a2", "#8c564b", "#d957a8", "#555555"];
  const measured = runs.filter((run) => metric in run.series);
  const traces = byId("bands").checked
    ? bandTraces(measured, metric, colorway)
    : measured.map((run) => ({
      x: run.series[state.axis],
      y: run.series[metric],
      name: several ? `${run.label}, seed ${run.seed}` : run.label,
      mode: "lines",
      connectgaps: true,
      line: {
        color: data.colors[run.label],
        width: 1.6,
        dash: several ? ["solid", "dot", "dash", "dashdot"][run.seed % 4] : run.label === "FedProx" ? "dash" : "solid",
      },
    }));
  const shapes = metric.endsWith(".accuracy")
    ? data.groups[state.group].targets.map((target) => ({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: target, y1: target,
        line: { color: "#888", width: 1, dash: "dot" },
      }))
    : [];
  const layout = {
    margin: { l: 70, r: 20, t: 20, b: 50 },
    xaxis: { title: { text: AXES[state.axis] }, type: byId("logx").checked ? "log" : "linear" },
    yaxis: { title: { text: metric.replace("models.", "").replaceAll(".", " ") }, type: byId("logy").checked ? "log" : "linear" },
    colorway,
    hovermode: "x unified",
    legend: { orientation: "h", y: -0.18 },
    showlegend: true,
    shapes,
  };
  Plotly.react("plot", traces, layout, { responsive: true, displaylogo: false });
}

function chooseAxis(axis) {
  state.axis = axis;
  for (const button of byId("axis").children) button.setAttribute("aria-pressed", String(button.dataset.axis === axis));
  draw();
}

function chooseGroup(number) {
  state.group = number;
  const select = byId("metric");
  const before = select.value;
  const metrics = [...new Set(runsOfGroup().flatMap((run) => run.metrics))];
  select.replaceChildren(...metrics.map((metric) => element("option", metric, { value: metric })));
  const preferred = [before, "models.all.accuracy", "models.server.accuracy", "models.all.objective"];
  select.value = preferred.find((metric) => metrics.includes(metric)) ?? metrics[0] ?? "";
  draw();
  listRuns();
}

function number(cell) {
  if (cell.dataset.value) return Number(cell.dataset.value);
  const found = /^[<>]?(-?[\d,]*\.?\d+(e[+-]?\d+)?)/.exec(cell.textContent);
  return found ? parseFloat(found[1].replaceAll(",", "")) : NaN;
}

function sortable(table) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.firstChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.querySelectorAll("tr.setting").forEach((row) => row.remove());
      body.querySelectorAll("[aria-expanded]").forEach((button) => button.setAttribute("aria-expanded", "false"));
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [one, other].map((row) => row.cells[column]);
        const [x, y] = [number(a), number(b)];
        const words = () => (isNaN(x) - isNaN(y)) || a.textContent.localeCompare(b.textContent);
        const order = isNaN(x) || isNaN(y) ? words() : x - y;
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
  return table;
}

function makeTable(columns, rows) {
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const column of columns) {
    const cell = element("th", undefined, { scope: "col" });
    cell.append(element("button", column, { type: "button", class: "plain" }));
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((cell) => line.append(element("td", cell)));
  }
  return sortable(table);
}

function toggleSetting(line, run) {
  const next = line.nextElementSibling;
  const open = Boolean(next && next.classList.contains("setting"));
  line.querySelector("button").setAttribute("aria-expanded", String(!open));
  if (open) {
    next.remove();
    return;
  }
  const row = element("tr", undefined, { class: "setting" });
  const cell = element("td", undefined, { colspan: line.cells.length });
  cell.append(element("pre", run.setting));
  row.append(cell);
  line.after(row);
}

function listRuns() {
  const runs = runsOfGroup();
  const own = (key) => (run) => String(run[key]);
  const differ = data.groups[state.group].keys.map(({ key, name }) => [name, (run) => run.values[key] ?? "-"]);
  const rest = ["seed", "status", "rounds", "figure", "last", "best"].map((key) => [key, own(key)]);
  const columns = [["run", own("label")], ...differ, ...rest, ["time", own("time")], ["record", own("name")]];
  const table = makeTable(columns.map(([name]) => name), runs.map((run) => columns.map(([, cell]) => cell(run))));
  [...table.tBodies[0].rows].forEach((line, place) => {
    line.className = "run";
    line.cells[columns.length - 2].dataset.value = runs[place].seconds;
    const button = element("button", runs[place].label, { type: "button", class: "plain", "aria-expanded": "false" });
    line.cells[0].replaceChildren(button);
    line.addEventListener("click", () => toggleSetting(line, runs[place]));
  });
  byId("runs").replaceChildren(table);
}

byId("about").textContent = data.about;
data.groups.forEach((group, place) => byId("group").append(element("option", group.name, { value: place })));
for (const [axis, words] of Object.entries(BUTTONS)) {
  const button = element("button", words, { type: "button", "data-axis": axis, "aria-pressed": String(axis === state.axis) });
  button.addEventListener("click", () => chooseAxis(axis));
  byId("axis").append(button, " ");
}
byId("group").addEventListener("change", (event) => chooseGroup(Number(event.target.value)));
byId("filter").addEventListener("input", () => {
  draw();
  listRuns();
});
for (const id of ["metric", "bands", "logx", "logy"]) byId(id).addEventListener("change", draw);
for (const table of data.tables) {
  const scroll = element("div", undefined, { class: "scroll" });
  scroll.append(makeTable(table.columns, table.rows));
  byId("tables").append(element("h2", table.title), scroll, ...table.notes.map((note) => element("p", note, { class: "note" })));
}
if (data.groups.length) chooseGroup(0);
else for (const part of document.querySelectorAll(".runs")) part.hidden = true;
