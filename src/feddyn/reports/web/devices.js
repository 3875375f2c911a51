// How the server's model does on every device, over rounds and in the end; and who has which classes.
const FEW = 6; // runs whose spread is drawn

// The metrics whose spread over the devices a run has: on_devices.METRIC.PART.
function spreads(run) {
  const names = Object.keys(run.series).filter((name) => name.startsWith("on_devices."));
  return new Set(names.map((name) => name.split(".")[1]));
}

function fillSelect(select, options, wanted) {
  select.replaceChildren(...options.map(([value, words]) => element("option", words, { value })));
  select.value = options.some(([value]) => value === wanted) ? wanted : (options[0]?.[0] ?? "");
  return select.value;
}

function drawDevices(members) {
  const able = members.filter(({ run }) => spreads(run).size || run.devices);
  byId("devices-part").hidden = !able.length;
  if (!able.length) return;
  const metrics = [...new Set(able.flatMap(({ run }) => [...spreads(run), ...Object.keys(run.devices ?? {})]))];
  const preferred = state.spread || (metrics.includes("accuracy") ? "accuracy" : metrics[0]);
  const metric = fillSelect(byId("spread"), metrics.map((name) => [name, name]), preferred);
  const selected = able.filter(({ id }) => state.selected.has(id));
  const drawn = (selected.length ? selected : able).slice(0, FEW);
  const left = (selected.length || able.length) - drawn.length;
  byId("devices-note").textContent =
    `Over rounds: the median device, the band from the 10% to the 90% quantile, and dotted the worst device; ` +
    `in the end: how many of the devices have at most so much.` +
    (left > 0 ? ` ${FEW} runs are drawn, ${left} more are not: select those that you want to see.` : "");
  const several = new Set(drawn.map(({ run }) => run.seed)).size > 1;
  const nameOf = ({ name, run }) => (several ? `${name}, seed ${run.seed}` : name);
  const own = drawn.map((member) => looks.get(strandOf(member)).color);
  const hue = (_, place) => (new Set(own).size < drawn.length ? data.palette[place] : own[place]);
  drawSpread(drawn, metric, nameOf, hue);
  drawEnds(drawn, metric, nameOf, hue);
  const strands = drawn.map((member, place) => ({ name: nameOf(member), color: hue(member, place), dash: "solid", ids: [member.id] }));
  drawLegend(byId("devices-legend"), strands);
}

function drawSpread(drawn, metric, nameOf, hue) {
  const traces = drawn.flatMap((member, place) => {
    const [low, middle, high, worst] = ["q10", "median", "q90", "worst"].map((part) => points(member.run, `on_devices.${metric}.${part}`));
    if (!middle) return [];
    const [color, name] = [hue(member, place), nameOf(member)];
    const edge = { mode: "lines", line: { width: 0, color }, hoverinfo: "skip" };
    return [
      { ...edge, ...low },
      { ...edge, ...high, fill: "tonexty", fillcolor: faint(color, 0.15) },
      { ...worst, name: `${name}: worst`, mode: "lines", line: { color, width: 1.3, dash: "dot" } },
      { ...middle, name: `${name}: median`, mode: "lines", line: { color, width: 2 } },
    ];
  });
  byId("spread-plot").hidden = !traces.length;
  if (!traces.length) return;
  const meaning = `${state.axis} ${metric}`;
  const layout = layoutOf(meaning, { title: { text: AXES[state.axis][1] } }, { title: { text: `${metric} on devices` } });
  Plotly.react("spread-plot", traces, { ...layout, hovermode: "closest" }, SETUP);
}

function drawEnds(drawn, metric, nameOf, hue) {
  const traces = drawn.flatMap((member, place) => {
    const found = member.run.devices?.[metric];
    if (!found) return [];
    return [{
      x: found.value, y: found.share, text: found.device, name: nameOf(member), mode: "lines+markers",
      line: { color: hue(member, place), shape: "hv", width: 1.6 }, marker: { size: 4 },
      hovertemplate: `device %{text}: %{x}<br>%{y:.0%} of the devices have at most this`,
    }];
  });
  byId("ends-plot").hidden = !traces.length;
  if (!traces.length) return;
  const y = { title: { text: "share of the devices" }, tickformat: ".0%", range: [0, 1.02] };
  Plotly.react("ends-plot", traces, { ...layoutOf(metric, { title: { text: `${metric} in the end` } }, y), hovermode: "closest" }, SETUP);
}

// Runs with the same split are one choice.
function drawSplit(members) {
  const found = new Map();
  for (const member of members) {
    if (!member.run.split) continue;
    const key = JSON.stringify(member.run.split.samples);
    found.set(key, [...(found.get(key) ?? []), member]);
  }
  byId("split-part").hidden = !found.size;
  if (!found.size) return;
  const splits = [...found.values()];
  const options = splits.map((mine) => {
    const first = mine[0];
    const more = mine.length > 1 ? ` and ${mine.length - 1} more` : "";
    return [first.id, `${first.name}, seed ${first.run.seed}${more}`];
  });
  const selected = splits.find((mine) => mine.some(({ id }) => id === state.split || state.selected.has(id)));
  const chosen = fillSelect(byId("split"), options, (state.split && options.some(([id]) => id === state.split)) ? state.split : selected?.[0].id);
  const { devices, samples, of } = data.runs[chosen].split;
  const totals = samples.map((row) => row.reduce((sum, count) => sum + count, 0));
  const most = Math.max(...totals);
  byId("split-note").textContent =
    `Above, how many samples a device has; below, which part of them is of which class.` +
    (of > devices.length ? ` ${devices.length} of ${of} devices, evenly spaced.` : "");
  const classes = samples[0].map((_, label) => label);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const heat = {
    type: "heatmap", x: devices, y: classes, z: classes.map((label) => samples.map((row, k) => row[label] / (totals[k] || 1))),
    customdata: classes.map((label) => samples.map((row) => row[label])), zmin: 0, zmax: 1, xgap: 1, ygap: 1,
    colorscale: [[0, look().back], [0.02, dark ? "#28323d" : "#e3ecf5"], [1, dark ? "#9fd0ff" : "#0a3e80"]],
    colorbar: { thickness: 10, tickformat: ".0%", len: 0.78, y: 0, yanchor: "bottom" },
    hovertemplate: "device %{x}, class %{y}: %{customdata} samples, %{z:.0%}<extra></extra>",
  };
  const bars = {
    type: "bar", x: devices, y: totals, yaxis: "y2", marker: { color: look().soft },
    hovertemplate: "device %{x}: %{y} samples<extra></extra>",
  };
  const x = { title: { text: "device" }, type: "category", nticks: 20 };
  const y = { title: { text: "class" }, domain: [0, 0.78], dtick: classes.length <= 12 ? 1 : undefined };
  const layout = layoutOf(chosen, x, y);
  layout.yaxis2 = { domain: [0.82, 1], range: [0, most * 1.05], nticks: 3, gridcolor: look().grid };
  layout.height = Math.min(160 + 18 * classes.length, 620);
  Plotly.react("split-plot", [heat, bars], layout, SETUP);
}
