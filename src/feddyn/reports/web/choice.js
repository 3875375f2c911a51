"use strict";
// What the reader chose. All of it stands in the page's address behind the #, so that an address is a view.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const state = {};
const FLAGS = ["bands", "logx", "logy", "only"];
const WORDS = ["axis", "figure", "filter", "sort", "spread", "split"];
const LISTS = { group: "groups", run: "selected", column: "axes" }; // the word in the address, and the set

function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  for (const flag of FLAGS) state[flag] = said.has(flag);
  for (const word of WORDS) state[word] = said.get(word) ?? "";
  for (const [word, set] of Object.entries(LISTS)) state[set] = new Set(said.getAll(word));
  state.axis = state.axis in AXES ? state.axis : "round";
  state.smooth = Math.min(Math.max(Number(said.get("smooth")) || 0, 0), 0.99);
  state.brushes = new Map();
  for (const brush of said.getAll("brush")) {
    const [key, low, high] = brush.split("~");
    if (high !== undefined) state.brushes.set(key, [low, high]);
  }
}

function writeAddress() {
  const said = new URLSearchParams();
  for (const [word, set] of Object.entries(LISTS)) for (const one of state[set]) said.append(word, one);
  for (const word of WORDS) if (state[word] && !(word === "axis" && state.axis === "round")) said.set(word, state[word]);
  for (const flag of FLAGS) if (state[flag]) said.set(flag, "1");
  if (state.smooth) said.set("smooth", state.smooth);
  for (const [key, ends] of state.brushes) said.append("brush", [key, ...ends].join("~"));
  // a part of the address that others read too: nothing of it is sent anywhere
  history.replaceState(null, "", `#${said}`);
}

// The groups that are shown: those that were chosen, else the first, and all of them where runs come up by themselves.
function chosenGroups() {
  const chosen = data.groups.filter((group) => state.groups.has(group.name));
  if (chosen.length) return chosen;
  return data.version ? data.groups : data.groups.slice(0, 1);
}

// The runs of these groups, each once, with what to call it: where two groups use a label, with the group's name.
function membersOfGroups() {
  const found = new Map();
  for (const group of chosenGroups()) {
    for (const member of group.members) {
      if (found.has(member.run)) continue;
      const run = data.runs[member.run];
      found.set(member.run, { ...member, id: member.run, run, group: group.name, targets: group.targets });
    }
  }
  const members = [...found.values()];
  const homes = new Map();
  for (const { label, group } of members) homes.set(label, (homes.get(label) ?? new Set()).add(group));
  for (const member of members) {
    member.name = homes.get(member.label).size > 1 ? `${member.label} · ${member.group}` : member.label;
  }
  return members;
}

function filtered(members) {
  const wanted = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const said = ({ name, group, run, status }) =>
    [name, group, `seed ${run.seed}`, status, ...Object.entries(run.values).flat()].join(" ").toLowerCase();
  return members.filter((member) => {
    const words = wanted.length ? said(member) : "";
    return wanted.every((word) => words.includes(word));
  });
}

// The settings in which some runs differ.
function differing(members) {
  return data.keys.filter(({ key }) => new Set(members.map(({ run }) => run.values[key])).size > 1);
}

function toggle(ids, on) {
  const all = on ?? !ids.every((id) => state.selected.has(id));
  for (const id of ids) state.selected[all ? "add" : "delete"](id);
  state.brushes.clear(); // they no longer say what is selected
  refresh();
}
