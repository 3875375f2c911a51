// From a run to the points that are drawn.
const AXES = {
  round: ["rounds", "rounds"],
  transmitted: ["transmissions", "models transmitted, relative to one round of FedAvg"],
  bytes: ["bytes", "bytes sent up and down"],
  gradients: ["gradients", "gradients of samples"],
  seconds: ["seconds", "seconds of computing"],
};
const PALETTE = [
  "#4e79c4", "#e07b39", "#17a2a2", "#c2479b", "#7b6fd0", "#6a994e", "#d1495b", "#8a6d3b", "#3d8bfd", "#b5892c", "#5f7a86", "#a05195",
];
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

const colors = new Map(); // a name keeps its colour whatever is filtered, and while runs come up

function colorOf(name) {
  if (data.colors[name]) return data.colors[name];
  if (!colors.has(name)) colors.set(name, PALETTE[colors.size % PALETTE.length]);
  return colors.get(name);
}

// "#rrggbb" with an opacity.
const faint = (color, opacity) => color + Math.round(opacity * 255).toString(16).padStart(2, "0");
const figureName = (figure) => figure.replace(/^models\./, "").replaceAll(".", " ");
