// The curves, their legend, and what is said about them.
const NAMES = 16; // in the legend
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
    const key = strandOf(member);
    const strand = byName.get(key) ?? { name, ...looks.get(key), ids: [], curves: [] };
    strand.ids.push(member.id);
    strand.curves.push(curve);
    byName.set(key, strand);
  }
  return [...byName.values()];
}

// Nothing in a text of anybody's is markup for Plotly.
const plainText = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

// Lines at what the runs that are drawn should reach, with their values. Of two neighbours, one is named below its line.
function targetsOf(members, drawn) {
  const there = new Set(drawn.flatMap(({ ids }) => ids));
  const mine = members.filter(({ id, run }) => there.has(id) && run.figure === state.figure);
  const found = new Map();
  for (const { targets, group } of mine) for (const one of targets) found.set(one, (found.get(one) ?? new Set()).add(group));
  const groups = new Set(mine.map(({ group }) => group)).size > 1 && byId("plot").clientWidth > 700;
  const values = [...found.keys()].sort((a, b) => a - b);
  const line = { color: look().soft, width: 1, dash: "dot" };
  const words = (one) => `target ${Number(one.toPrecision(4))}` + (groups && found.get(one).size === 1 ? ` · ${[...found.get(one)][0]}` : "");
  return {
    shapes: values.map((one) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: one, y1: one, line })),
    annotations: values.map((one, place) => ({
      text: plainText(words(one)), xref: "paper", x: 1, xanchor: "right", y: state.logy ? Math.log10(one) : one,
      yanchor: (values.length - place) % 2 ? "bottom" : "top", showarrow: false, font: { size: 11, color: look().soft },
      bgcolor: faint(look().back, 0.75), borderpad: 1,
    })),
  };
}

// A single round has no range of its own: around it, and for shares from 0 to 1.
function soleRange(drawn) {
  const ys = new Set(drawn.flatMap(({ curves }) => curves.flatMap(({ y }) => y)));
  if (ys.size !== 1) return {};
  const [only] = ys;
  if (state.logy) return {};
  const share = metricOf(state.figure) === "accuracy" && only >= 0 && only <= 1;
  return { range: share ? [0, 1] : [only - (Math.abs(only) || 1) / 2, only + (Math.abs(only) || 1) / 2] };
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
  const rounds = Math.max(0, ...drawn.map(({ curves }) => Math.max(...curves.map(({ x }) => x.at(-1)))));
  const layout = {
    ...layoutOf(
      [state.axis, state.figure, state.logx, state.logy].join(" "),
      { title: { text: AXES[state.axis][1] }, type: state.logx ? "log" : "linear", ...(state.axis === "round" && !state.logx && rounds <= 10 ? { dtick: 1 } : {}) },
      { title: { text: plainText(figureName(state.figure)) }, type: state.logy ? "log" : "linear", nticks: 8, ...soleRange(drawn) },
    ),
    hovermode: drawn.length > UNIFIED ? "closest" : "x unified",
    ...targetsOf(chosen, drawn),
  };
  Plotly.react("plot", layers.flatMap((strand) => tracesOf(strand, most)), layout, SETUP);
  byId("plot").removeAllListeners("plotly_click");
  byId("plot").on("plotly_click", ({ points: [point] }) => toggle(point.data.meta));
  drawLegend(byId("legend"), drawn);
  tellPlot(chosen, drawn);
}

// A piece of the line, with the dashes that Plotly draws.
function swatch({ color, dash }) {
  const [width, w] = [30, 2.5];
  const made = shape("svg", { class: "swatch", width, height: 6, "aria-hidden": "true" });
  const pattern = { solid: "", dot: [w, w], dash: [3 * w, 3 * w], longdash: [5 * w, 5 * w], dashdot: [3 * w, w, w, w], longdashdot: [5 * w, 2 * w, w, 2 * w] }[dash];
  made.append(shape("line", { x1: 0, x2: width, y1: 3, y2: 3, stroke: color, "stroke-width": w, "stroke-dasharray": pattern }));
  return made;
}

function drawLegend(place, drawn) {
  const first = [...drawn].sort((a, b) => (emphasis(b.ids) === "strong") - (emphasis(a.ids) === "strong"));
  const listed = (drawn.length > NAMES ? first : drawn).slice(0, NAMES).map((strand) => {
    const pressed = strand.ids.every((id) => state.selected.has(id));
    const button = element("button", undefined, { type: "button", "aria-pressed": String(pressed), "data-focus": `${place.id} ${strand.ids[0]}` });
    button.append(swatch(strand), strand.name);
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
