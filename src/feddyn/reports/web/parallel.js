// Parallel coordinates: an axis for each setting in which the runs differ and for what came of them, a line for each run.
const SVG = "http://www.w3.org/2000/svg";
const [TOP, HEIGHT, BOTTOM, GAP, MOST_AXES] = [34, 240, 44, 132, 9];
const SHADES = [[199, 210, 222], [120, 168, 205], [44, 116, 179], [10, 62, 128]];
const DARK_SHADES = [[72, 82, 94], [74, 122, 160], [110, 172, 224], [214, 236, 255]];

function shape(tag, attributes = {}, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.append(text);
  return made;
}

// What an axis says of a run: a number, a word, or undefined.
function columnsOf(members) {
  const settings = differing(members).map(({ key, name, minor }) => ({ key, name, minor, of: ({ run }) => run.values[key] }));
  const figure = figureName(state.figure);
  const results = ["last", "best"].map((end) => ({
    key: `= ${end}`, name: `${figure}, ${end}`, title: `${figure.split(" (")[0]}, ${end}`, of: ({ run }) => ends(run, state.figure)[end], result: true,
  }));
  return [...settings, ...results.filter(({ of }) => members.some((member) => of(member) !== undefined))];
}

// Where values stand on an axis, from 0 (low) to 1: numbers evenly or, where they span more than a decade, by magnitude; words
// side by side.
function scaleOf(column, members) {
  const values = members.map((member) => column.of(member));
  const given = values.filter((one) => one !== undefined && one !== "-");
  const numbers = given.map(Number);
  if (given.length && numbers.every(Number.isFinite)) {
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const log = low > 0 && high / low >= 20;
    const bend = log ? Math.log10 : (one) => one;
    const at = (one) => (high === low ? 0.5 : (bend(Number(one)) - bend(low)) / (bend(high) - bend(low)));
    const back = (place) => (log ? 10 ** (bend(low) + place * (bend(high) - bend(low))) : low + place * (high - low));
    return { at, back, log, ticks: ticksOf([...new Set(numbers)].sort((a, b) => a - b), low, high, log) };
  }
  const words = [...new Set(given)].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  const at = (word) => (words.length === 1 ? 0.5 : words.indexOf(word) / (words.length - 1));
  return { at, words, ticks: words };
}

function ticksOf(distinct, low, high, log) {
  if (distinct.length <= 8) return distinct;
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const decades = Array.from({ length: Math.floor(Math.log10(high) + 1e-9) - first + 1 }, (_, i) => Number(`1e${first + i}`));
    return [low, ...decades, high];
  }
  return Array.from({ length: 5 }, (_, i) => low + (i * (high - low)) / 4);
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function passes(column, scale, member) {
  const brush = state.brushes.get(column.key);
  if (!brush) return true;
  const one = column.of(member);
  if (one === undefined || one === "-") return false;
  const place = scale.at(one);
  const [low, high] = brush.map((end) => scale.at(end));
  return place >= low - 1e-6 && place <= high + 1e-6;
}

// Select the runs that pass through all brushes.
function applyBrushes(members, axes) {
  if (!state.brushes.size) return;
  state.selected = new Set(
    members.filter((member) => axes.every(({ column, scale }) => passes(column, scale, member))).map(({ id }) => id),
  );
}

function setBrush(key, ends) {
  if (ends) state.brushes.set(key, ends.map(String));
  else state.brushes.delete(key);
  if (!state.brushes.size) state.selected.clear();
  refresh();
}

// A brush from one place of an axis to another: values of a setting that are words are taken whole.
function brushBetween(scale, one, other) {
  const [low, high] = [Math.min(one, other), Math.max(one, other)];
  if (!scale.words) return [scale.back(low), scale.back(high)];
  const inside = scale.words.filter((word) => scale.at(word) >= low - 0.02 && scale.at(word) <= high + 0.02);
  return inside.length ? [inside[0], inside.at(-1)] : null;
}

function dragBrush(hold, column, scale, svg) {
  const placeOf = (event) => {
    const y = event.clientY - svg.getBoundingClientRect().top;
    return Math.min(Math.max(1 - (y - TOP) / HEIGHT, 0), 1);
  };
  hold.addEventListener("pointerdown", (event) => {
    const [from, y] = [placeOf(event), event.clientY];
    const drawn = shape("rect", { class: "brush", x: -7, width: 14 });
    hold.before(drawn);
    hold.setPointerCapture(event.pointerId);
    hold.addEventListener("pointermove", (move) => {
      const to = placeOf(move);
      const [low, high] = [Math.min(from, to), Math.max(from, to)];
      drawn.setAttribute("y", TOP + (1 - high) * HEIGHT);
      drawn.setAttribute("height", (high - low) * HEIGHT);
    });
    hold.addEventListener(
      "pointerup",
      (up) => setBrush(column.key, Math.abs(up.clientY - y) < 4 ? null : brushBetween(scale, from, placeOf(up))),
      { once: true },
    );
  });
}

// On the keyboard: the next value up or down, with Shift in addition, and Escape.
function keyBrush(hold, column, scale, members) {
  const given = members.map((member) => column.of(member)).filter((one) => one !== undefined && one !== "-");
  const values = [...new Set(given.map(String))].sort((a, b) => scale.at(a) - scale.at(b));
  hold.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") setBrush(column.key, null);
    if (!step || !values.length) return;
    event.preventDefault();
    const brush = state.brushes.get(column.key);
    const [low, high] = (brush ?? []).map((end) => values.indexOf(end));
    const edge = brush ? (step > 0 ? high : low) + step : step > 0 ? 0 : values.length - 1;
    const next = Math.min(Math.max(edge, 0), values.length - 1);
    const wide = event.shiftKey && brush;
    setBrush(column.key, [values[wide ? Math.min(low, next) : next], values[wide ? Math.max(high, next) : next]]);
  });
}

function drawAxis({ column, scale }, x, svg, members) {
  const part = shape("g", { transform: `translate(${x} 0)` });
  const y = (place) => TOP + (1 - place) * HEIGHT;
  part.append(shape("line", { class: "stem", y1: TOP, y2: TOP + HEIGHT }));
  const title = shape("text", { y: 16, "text-anchor": "middle" }, cut(column.title ?? column.name, 19));
  title.append(shape("title", {}, column.name));
  part.append(title);
  let free = Infinity;
  const ticks = [...scale.ticks].sort((a, b) => scale.at(a) - scale.at(b));
  const words = shortened(ticks.map(String), 3);
  for (const [place, tick] of ticks.entries()) {
    const at = y(scale.at(tick));
    if (free - at < 13) continue;
    free = at;
    const word = shape("text", { class: "tick", x: -6, y: at + 4, "text-anchor": "end" }, cut(words[place], 14));
    word.append(shape("title", {}, words[place]));
    part.append(word, shape("line", { class: "stem", x1: -3, x2: 0, y1: at, y2: at }));
  }
  if (members.some((member) => [undefined, "-"].includes(column.of(member)))) {
    part.append(shape("text", { class: "tick", y: TOP + HEIGHT + 34, "text-anchor": "middle" }, "none"));
  }
  const brush = state.brushes.get(column.key);
  if (brush) {
    const [low, high] = brush.map((end) => y(Math.min(Math.max(scale.at(end), 0), 1)));
    part.append(shape("rect", { class: "brush", x: -7, width: 14, y: high - 4, height: low - high + 8 }));
  }
  const about = brush ? `${brush[0]} to ${brush[1]}` : "all values";
  const hold = shape("rect", {
    class: "hold", x: -15, width: 30, y: TOP - 6, height: HEIGHT + 12, tabindex: 0, role: "slider",
    "aria-label": column.name, "aria-valuetext": about, "aria-orientation": "vertical", "data-focus": `axis ${column.key}`,
    "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": brush ? scale.at(brush[0]).toFixed(2) : 0,
  });
  dragBrush(hold, column, scale, svg);
  keyBrush(hold, column, scale, members);
  part.append(hold);
  return part;
}

// A shade for every run by its place among them, the worst first: outliers do not make all others alike.
function shadesOf(members) {
  const found = members.flatMap((member) => {
    const { best, last, better } = ends(member.run, state.figure);
    const one = best ?? last;
    return one === undefined ? [] : [[member.id, better === "lower" ? -one : one]];
  });
  found.sort(([, a], [, b]) => a - b);
  const shades = matchMedia("(prefers-color-scheme: dark)").matches ? DARK_SHADES : SHADES;
  const parts = shades.length - 1;
  const mixed = found.map(([id], place) => {
    const good = (place / Math.max(found.length - 1, 1)) * parts;
    const step = Math.min(Math.floor(good), parts - 1);
    return [id, `rgb(${shades[step].map((low, i) => Math.round(low + (good - step) * (shades[step + 1][i] - low))).join(" ")})`];
  });
  return new Map(mixed);
}

// The axes that are drawn: those that were chosen, else what was swept, what tells most of the rest, and the results.
function axesOf(members) {
  const columns = columnsOf(members);
  const results = columns.filter(({ result }) => result);
  const swept = new Set(chosenGroups().flatMap((group) => group.swept));
  const rank = ({ key, minor }) => (key === "algorithm.name" ? 0 : swept.has(key) ? 1 : minor ? 3 : 2);
  const settings = columns.filter(({ result }) => !result).sort((a, b) => rank(a) - rank(b));
  const first = settings.filter((column, _, all) => rank(column) < 3 || rank(all[0]) === 3).slice(0, MOST_AXES - results.length);
  const usual = [...first, ...results];
  const drawn = state.axes.size ? columns.filter(({ key }) => state.axes.has(key)) : usual;
  return { columns, axes: drawn.map((column) => ({ column, scale: scaleOf(column, members) })) };
}

function drawParallel(members, { columns, axes }) {
  byId("parallel-part").hidden = members.length < 2 || !differing(members).length;
  if (byId("parallel-part").hidden) return;
  const names = columns.map(({ name }) => name);
  const on = (name) => axes.some(({ column }) => column.name === name);
  fillMenu(byId("axes"), "axes", names, on, (name, ticked) => {
    const wanted = new Set(columns.filter((column) => (name === null ? ticked : column.name === name ? ticked : on(column.name))).map(({ key }) => key));
    state.axes = wanted;
    refresh();
  });
  const width = Math.max(GAP * (axes.length - 1) + 190, byId("parallel").clientWidth || 0);
  const gap = (width - 190) / Math.max(axes.length - 1, 1);
  const svg = shape("svg", { width, height: TOP + HEIGHT + BOTTOM, role: "group", "aria-label": "parallel coordinates" });
  const missing = TOP + HEIGHT + 22;
  const rank = { weak: 0, plain: 1, strong: 2 };
  const layers = [...members].sort((a, b) => rank[emphasis([a.id])] - rank[emphasis([b.id])]);
  const shades = shadesOf(members);
  for (const member of layers) {
    const places = axes.map(({ column, scale }, i) => {
      const one = column.of(member);
      return `${(110 + i * gap).toFixed(1)} ${one === undefined || one === "-" ? missing : (TOP + (1 - scale.at(one)) * HEIGHT).toFixed(1)}`;
    });
    const opacity = { weak: 0.12, plain: 0.75, strong: 1 }[emphasis([member.id])];
    const path = shape("path", { d: `M${places.join("L")}`, stroke: shades.get(member.id) ?? "#888888", "stroke-opacity": opacity, "data-run": member.id });
    path.append(shape("title", {}, `${member.name}, seed ${member.run.seed}`));
    path.addEventListener("click", () => toggle([member.id]));
    svg.append(path);
  }
  axes.forEach((axis, i) => svg.append(drawAxis(axis, 110 + i * gap, svg, members)));
  byId("parallel").replaceChildren(svg);
}
