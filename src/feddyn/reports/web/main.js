// Everything together: controls, what follows from them, and new rounds where the page is served while runs go on.
function fillControls(members) {
  const groups = chosenGroups();
  fillMenu(byId("groups"), "groups", data.groups.map(({ name }) => name), (name) => groups.some((group) => group.name === name), (name, on) => {
    const chosen = groups.map((group) => group.name).filter((other) => other !== name);
    state.groups = new Set(name === null ? data.groups.map((group) => group.name) : on ? [...chosen, name] : chosen);
    refresh();
  });
  const figures = [...new Set(members.flatMap(({ run }) => Object.keys(run.series).filter((name) => name.includes("."))))];
  // the figure that counts for most of the runs, unless another was chosen
  const votes = new Map();
  for (const { run } of members) votes.set(run.figure, (votes.get(run.figure) ?? 0) + 1);
  const usual = [...votes].sort(([, a], [, b]) => b - a)[0]?.[0];
  const wanted = figures.includes(state.figure) ? state.figure : usual;
  state.figure = fillSelect(byId("figure"), figures.map((name) => [name, figureName(name)]), wanted);
  byId("axis").replaceChildren(
    ...Object.entries(AXES).map(([axis, [words]]) => {
      const there = members.some(({ run }) => axis in run.series);
      const button = element("button", words, { type: "button", "aria-pressed": String(axis === state.axis), "data-focus": `axis ${axis}` });
      button.disabled = !there;
      button.addEventListener("click", () => {
        state.axis = axis;
        refresh();
      });
      return button;
    }),
  );
  for (const flag of FLAGS) byId(flag).checked = state[flag];
  if (byId("filter").value !== state.filter) byId("filter").value = state.filter;
  byId("smooth").value = state.smooth;
  byId("weight").textContent = state.smooth ? state.smooth.toFixed(2) : "off";
  byId("clear").disabled = !state.selected.size;
}

function refresh() {
  byId("about").textContent = data.about;
  byId("missing").replaceChildren(...data.missing.map((why) => element("li", `left out: ${why}`)));
  byId("nothing").hidden = data.groups.length > 0 || data.tables.length > 0;
  byId("runs-part").hidden = !data.groups.length;
  if (!data.groups.length) return;
  keepingFocus(() => {
    const every = membersOfGroups();
    giveLooks(every);
    fillControls(every);
    const members = filtered(every);
    const parallel = axesOf(members);
    applyBrushes(members, parallel.axes);
    byId("clear").disabled = !state.selected.size;
    byId("count").textContent = state.selected.size ? `${state.selected.size} selected` : "";
    listRuns(members);
    drawPlot(members);
    drawParallel(members, parallel);
    const shown = state.only && state.selected.size ? members.filter(({ id }) => state.selected.has(id)) : members;
    drawDevices(shown);
    drawSplit(shown);
  });
  writeAddress();
}

let waiting = 0;

// Who types or drags need not wait for every stroke.
function soon() {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(refresh);
}

function listen() {
  for (const flag of FLAGS) {
    byId(flag).addEventListener("change", (event) => {
      state[flag] = event.target.checked;
      refresh();
    });
  }
  for (const word of ["figure", "spread", "split"]) {
    byId(word).addEventListener("change", (event) => {
      state[word] = event.target.value;
      refresh();
    });
  }
  byId("filter").addEventListener("input", (event) => {
    state.filter = event.target.value;
    soon();
  });
  byId("smooth").addEventListener("input", (event) => {
    state.smooth = Number(event.target.value);
    soon();
  });
  byId("clear").addEventListener("click", () => {
    state.selected.clear();
    state.brushes.clear();
    refresh();
  });
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  });
  window.addEventListener("hashchange", () => {
    readAddress();
    refresh();
  });
  window.addEventListener("resize", soon);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
}

// What the server sends holds the runs that changed; the choice stays as it is.
function merge(fresh) {
  const runs = { ...data.runs, ...fresh.runs };
  const there = new Set(fresh.groups.flatMap(({ members }) => members.map(({ run }) => run)));
  Object.assign(data, fresh, { runs: Object.fromEntries(Object.entries(runs).filter(([id]) => there.has(id))) });
  refresh();
  listTables();
}

async function follow() {
  let words = "Live.";
  try {
    const reply = await fetch(`data.json?seen=${data.version}`, { cache: "no-store" });
    if (reply.status === 200) merge(await reply.json());
    else if (reply.status !== 204) throw new Error(String(reply.status));
  } catch {
    words = "No longer live: the command that serves this page has ended.";
  }
  if (byId("live").textContent !== words) byId("live").textContent = words;
  setTimeout(follow, data.every * 1000);
}

readAddress();
refresh();
listTables();
listen();
if (data.version) follow();
