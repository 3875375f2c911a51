// The curves, their legend, and what is said about them.
const NAMES = 24; // in the legend
const UNIFIED = 12; // curves whose figures are shown together under the pointer

function look() {
  const style = getComputedStyle(document.documentElement);
  const at = (name) => style.getPropertyValue(name).trim();
  return { text: at("--text"), soft: at("--soft"), back: at("--back"), grid: at("--grid") };
}

// What all plots have in common; zoom stays as long as the axes mean the same.
function layoutOf(meaning, x, y) {
  const { text, back, grid } = look();
  const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true };
  return {
    margin: { l: 60, r: 12, t: 10, b: 44 },
    font: { color: text, family: "system-ui, sans-serif" },
    paper_bgcolor: back,
    plot_bgcolor: back,
    hoverlabel: { namelength: -1, bgcolor: back, font: { color: text } },
    uirevision: meaning,
    showlegend: false,
    xaxis: { ...axis, ...x },
    yaxis: { ...axis, ...y },
  };
}

const SETUP = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
const emphasis = (ids) => (!state.selected.size ? "plain" : ids.some((id) => state.selected.has(id)) ? "strong" : "weak");

// One line of the plot: a run, or with seeds as bands all runs of a name.
function strands(members) {
  const several = new Set(members.map(({ run }) => run.seed)).size > 1;
  const byName = new Map();
  for (const member of members) {
    const curve = points(member.run, state.figure);
    if (!curve) continue;
    const name = !state.bands && several ? `${member.name}, seed ${member.run.seed}` : member.name;
    const key = state.bands ? member.name : member.id;
    const strand = byName.get(key) ?? { name, color: colorOf(member.name), ids: [], curves: [], seed: member.run.seed };
    strand.ids.push(member.id);
    strand.curves.push(curve);
    byName.set(key, strand);
  }
  const dashes = ["solid", "dot", "dash", "dashdot"];
  return [...byName.values()].map((strand) => ({
    ...strand,
    dash: several && !state.bands ? dashes[strand.seed % 4] : strand.name === "FedProx" ? "dash" : "solid",
  }));
}

function tracesOf(strand, most) {
  const how = emphasis(strand.ids);
  const opacity = how === "weak" ? 0.2 : 1;
  const color = faint(strand.color, opacity);
  const skip = { mode: "lines", hoverinfo: "skip", meta: strand.ids };
  const found = [];
  let line = strand.curves[0];
  if (strand.curves.length > 1) {
    const { x, y, least, most: top } = band(strand.curves);
    const edge = { ...skip, x, line: { width: 0, color } };
    found.push({ ...edge, y: least }, { ...edge, y: top, fill: "tonexty", fillcolor: faint(strand.color, 0.18 * opacity) });
    line = { x, y };
  }
  if (state.smooth) {
    const raw = thinned(line, most / 2);
    found.push({ ...skip, ...raw, name: "raw", line: { color: faint(strand.color, 0.22 * opacity), width: 1 } });
  }
  const curve = thinned({ x: line.x, y: smoothed(line.y, state.smooth) }, most);
  const width = how === "strong" ? 2.8 : how === "weak" ? 1 : 1.6;
  const shown = curve.x.length === 1 ? "markers" : "lines";
  found.push({ ...curve, name: strand.name, mode: shown, meta: strand.ids, line: { color, width, dash: strand.dash }, marker: { color } });
  return found;
}

function drawPlot(members) {
  const chosen = state.only && state.selected.size ? members.filter(({ id }) => state.selected.has(id)) : members;
  const drawn = strands(chosen);
  const most = Math.max(80, Math.round(POINTS / (drawn.length || 1)));
  const order = { weak: 0, plain: 1, strong: 2 };
  const layers = [...drawn].sort((a, b) => order[emphasis(a.ids)] - order[emphasis(b.ids)]);
  const targets = state.figure.endsWith(".accuracy") ? new Set(chosen.flatMap((member) => member.targets)) : [];
  const layout = {
    ...layoutOf(
      [state.axis, state.figure, state.logx, state.logy].join(" "),
      { title: { text: AXES[state.axis][1] }, type: state.logx ? "log" : "linear" },
      { title: { text: figureName(state.figure) }, type: state.logy ? "log" : "linear", nticks: 8 },
    ),
    hovermode: drawn.length > UNIFIED ? "closest" : "x unified",
    shapes: [...targets].map((target) => ({
      type: "line", xref: "paper", x0: 0, x1: 1, y0: target, y1: target, line: { color: look().soft, width: 1, dash: "dot" },
    })),
  };
  Plotly.react("plot", layers.flatMap((strand) => tracesOf(strand, most)), layout, SETUP);
  byId("plot").removeAllListeners("plotly_click");
  byId("plot").on("plotly_click", ({ points: [point] }) => toggle(point.data.meta));
  drawLegend(byId("legend"), drawn);
  tellPlot(chosen, drawn);
}

function drawLegend(place, drawn) {
  const first = [...drawn].sort((a, b) => (emphasis(b.ids) === "strong") - (emphasis(a.ids) === "strong"));
  const listed = (drawn.length > NAMES ? first : drawn).slice(0, NAMES).map((strand) => {
    const pressed = strand.ids.every((id) => state.selected.has(id));
    const button = element("button", undefined, { type: "button", "aria-pressed": String(pressed), "data-focus": `${place.id} ${strand.ids[0]}` });
    const style = { solid: "solid", dot: "dotted", dash: "dashed", dashdot: "dashed" }[strand.dash];
    button.append(element("span", undefined, { class: "swatch", style: `color:${strand.color};border-top-style:${style}` }), strand.name);
    button.addEventListener("click", () => toggle(strand.ids));
    return button;
  });
  place.replaceChildren(...listed);
}

function tellPlot(chosen, drawn) {
  const words = ["Hover for values, drag to zoom, double-click to zoom out, click a curve or a name to select it."];
  const left = drawn.length - NAMES;
  if (left > 0) words.push(`${left} more ${left === 1 ? "curve is" : "curves are"} named in the table.`);
  const bare = chosen.filter(({ run }) => state.figure in run.series && !(state.axis in run.series)).length;
  if (bare) words.push(`${bare} of the runs ${bare === 1 ? "has" : "have"} no ${AXES[state.axis][0]}.`);
  const other = chosen.filter(({ run }) => !(state.figure in run.series)).length;
  if (other) words.push(`${other} of the runs ${other === 1 ? "has" : "have"} no ${figureName(state.figure)}.`);
  byId("hint").textContent = words.join(" ");
}
