// From a run to the points that are drawn.
const AXES = {
  round: ["rounds", "rounds"],
  transmitted: ["transmissions", "models transmitted, relative to one round of FedAvg"],
  bytes: ["bytes", "bytes sent up and down"],
  gradients: ["gradients", "gradients of samples"],
  seconds: ["seconds", "seconds of computing"],
};
const DASHES = ["solid", "dot", "dash", "dashdot", "longdash", "longdashdot"];
const POINTS = 40000; // that are drawn of all curves together

// The figure of a run by what is chosen, without the rounds that have none.
function points(run, figure, axis = state.axis) {
  const [xs, ys] = [run.series[axis], run.series[figure]];
  if (!xs || !ys) return null;
  const kept = ys.flatMap((y, i) => (y === null || xs[i] === null ? [] : [i]));
  return kept.length ? { x: kept.map((i) => xs[i]), y: kept.map((i) => ys[i]) } : null;
}

// A point becomes SUM w^j y(i-j) / SUM w^j; one that is no number is passed over.
function smoothed(ys, weight) {
  if (!weight) return ys;
  let [sum, norm] = [0, 0];
  return ys.map((y) => {
    if (y === null || !Number.isFinite(y)) return y;
    sum = weight * sum + y;
    norm = weight * norm + 1;
    return sum / norm;
  });
}

// Of many points the least and the most of every stretch, so that no peak is lost.
function thinned({ x, y }, most) {
  if (x.length <= most) return { x, y };
  const stretch = Math.ceil((2 * x.length) / most);
  const kept = [];
  for (let from = 0; from < x.length; from += stretch) {
    let [low, high] = [from, from];
    for (let i = from; i < Math.min(from + stretch, x.length); i++) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
    }
    kept.push(...(low === high ? [low] : [Math.min(low, high), Math.max(low, high)]));
  }
  if (kept.at(-1) !== x.length - 1) kept.push(x.length - 1);
  return { x: kept.map((i) => x[i]), y: kept.map((i) => y[i]) };
}

const metricOf = (figure) => figure.split(".")[2];

// The last value of the figure and, where one way is better, the best one.
function ends(run, figure) {
  const ys = (run.series[figure] ?? []).filter((y) => y !== null);
  const better = figure.startsWith("models.") ? run.better[metricOf(figure)] : undefined;
  const best = (one, other) => ((better === "higher") === other > one ? other : one);
  return { last: ys.at(-1), best: better && ys.length ? ys.reduce(best) : undefined, better };
}

function said(value) {
  if (value === undefined || value === null) return "-";
  const size = Math.abs(value);
  return value === 0 || (size >= 1e-3 && size < 1e4) ? value.toFixed(4) : value.toPrecision(3);
}

// The mean of runs at every evaluated round that any of them reached, and the range of their figures.
function band(curves) {
  const length = Math.max(...curves.map(({ x }) => x.length));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const rows = Array.from({ length }, (_, i) => curves.filter(({ x }) => i < x.length).map(({ x, y }) => [x[i], y[i]]));
  const ys = rows.map((row) => row.map(([, y]) => y));
  return {
    x: rows.map((row) => mean(row.map(([x]) => x))),
    y: ys.map(mean),
    least: ys.map((row) => Math.min(...row)),
    most: ys.map((row) => Math.max(...row)),
  };
}

// Numbers among some texts with as few digits, but at least so many, as keep them apart; whole ones stay as they are.
function shortened(texts, least = 4) {
  const bare = (text) => text !== "" && Number.isFinite(Number(text)) && !Number.isInteger(Number(text)) && Math.abs(text) < 1000;
  const numbers = [...new Set(texts.filter(bare).map(Number))];
  let digits = least;
  while (digits < 12 && new Set(numbers.map((one) => one.toPrecision(digits))).size < numbers.length) digits++;
  return texts.map((text) => (bare(text) ? String(Number(Number(text).toPrecision(digits))) : text));
}

const colors = new Map(); // of what is no method, by name
const looks = new Map(); // colour and dash pattern of every curve: they stay whatever is filtered, and while runs come up
let looksOf = "";
const methodOf = ({ label, run }) => run.values["algorithm.name"] ?? label;
const strandOf = (member) => (state.bands ? member.name : member.id);

// A method has one colour in all groups; where there are several methods, all curves of one have it.
function colorOf(member, several) {
  const key = several ? methodOf(member) : member.label;
  const known = data.colors[member.label] ?? data.colors[key];
  if (known) return known;
  if (!colors.has(key)) colors.set(key, data.palette[colors.size % data.palette.length]);
  return colors.get(key);
}

// A colour that occurs again comes with another dash pattern.
function giveLooks(members) {
  const several = new Set(members.map(methodOf)).size > 1;
  const choice = JSON.stringify([chosenGroups().map(({ name }) => name), state.bands, several]);
  if (choice !== looksOf) looks.clear();
  looksOf = choice;
  const times = new Map();
  for (const { color } of looks.values()) times.set(color, (times.get(color) ?? 0) + 1);
  for (const member of members) {
    if (looks.has(strandOf(member))) continue;
    const color = colorOf(member, several);
    const first = member.label === "FedProx" ? 2 : 0; // it often lies on FedAvg's curve
    const before = times.get(color) ?? 0;
    looks.set(strandOf(member), { color, dash: DASHES[(first + before) % DASHES.length] });
    times.set(color, before + 1);
  }
}

// "#rrggbb" with an opacity.
const faint = (color, opacity) => color + Math.round(opacity * 255).toString(16).padStart(2, "0");

// What the axes, columns and menus call a figure.
function figureName(figure) {
  const [kind, first, second] = figure.split(".");
  if (kind === "models") return `${second} (${data.models[first] ?? first})`;
  if (kind === "norms") return `norm of ${first} (server)`;
  if (kind === "devices") return `${first} (mean over active devices)`;
  return `${first} on devices (${second})`;
}
