// The table of runs: what they differ in, how far they are, and what came of them.
const unfolded = new Set(); // runs whose setting is shown

function settingRow(member, width) {
  const row = element("tr", undefined, { class: "setting" });
  const cell = element("td", undefined, { colspan: width });
  cell.append(element("pre", member.run.setting));
  row.append(cell);
  return row;
}

function toggleSetting(line, member, button) {
  const shown = unfolded.has(member.id);
  unfolded[shown ? "delete" : "add"](member.id);
  button.setAttribute("aria-expanded", String(!shown));
  if (shown) line.nextElementSibling.remove();
  else line.after(settingRow(member, line.cells.length));
}

function ticked(member) {
  const label = `select ${member.name}, seed ${member.run.seed}`;
  const input = element("input", undefined, { type: "checkbox", "aria-label": label, "data-focus": `run ${member.id}` });
  input.checked = state.selected.has(member.id);
  input.addEventListener("change", () => toggle([member.id], input.checked));
  return input;
}

function everyRun(members) {
  const input = element("input", undefined, { type: "checkbox", "aria-label": "select all runs of the table", "data-focus": "run all" });
  input.checked = members.length > 0 && members.every(({ id }) => state.selected.has(id));
  input.addEventListener("change", () => toggle(members.map(({ id }) => id), input.checked));
  return input;
}

function listRuns(members) {
  const groups = new Set(members.map(({ group }) => group)).size > 1;
  const figure = figureName(state.figure);
  const columns = [
    ["run", ({ label }) => label],
    ["seed", ({ run }) => String(run.seed)],
    ...(groups ? [["group", ({ group }) => group]] : []),
    [`${figure}, last`, ({ run }) => said(ends(run, state.figure).last)],
    [`${figure}, best`, ({ run }) => said(ends(run, state.figure).best)],
    ...differing(members).map(({ key, name }) => {
      const values = shortened(members.map(({ run }) => run.values[key] ?? "-"));
      return [name, (_, place) => values[place]];
    }),
    ["status", ({ status }) => status],
    ["rounds", ({ run }) => String(run.rounds)],
    ["time", ({ run }) => run.time],
    ["record", ({ run }) => run.name],
  ];
  const rows = members.map((member, place) => [ticked(member), ...columns.map(([, cell]) => cell(member, place))]);
  const table = makeTable([everyRun(members), ...columns.map(([name]) => name)], rows, (column, down) => {
    state.sort = `${down ? "-" : ""}${column}`;
    writeAddress();
  });
  const time = 1 + columns.findIndex(([name]) => name === "time");
  [...table.tBodies[0].rows].forEach((line, place) => {
    const member = members[place];
    line.className = state.selected.has(member.id) ? "run chosen" : "run";
    line.dataset.run = member.id;
    line.cells[time].dataset.value = member.run.seconds;
    const button = element("button", member.label, {
      type: "button", class: "plain", title: member.name, "aria-expanded": String(unfolded.has(member.id)), "data-focus": `setting ${member.id}`,
    });
    line.cells[1].replaceChildren(button);
    button.addEventListener("click", () => toggleSetting(line, member, button));
    if (unfolded.has(member.id)) line.after(settingRow(member, line.cells.length));
  });
  const sorted = columns.findIndex(([name]) => name === state.sort.replace(/^-/, ""));
  if (sorted >= 0) sortRows(table, sorted + 1, state.sort.startsWith("-"));
  byId("runs").replaceChildren(table);
  byId("runs-head").textContent = `Runs: ${members.length}`;
}
