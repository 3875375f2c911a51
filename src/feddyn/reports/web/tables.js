// Small parts of the page: elements, menus with boxes to tick, and tables that sort.
function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function box(label, checked, change, attributes = {}) {
  const made = element("label", undefined, attributes);
  const input = element("input", undefined, { type: "checkbox", "data-focus": `box ${label}` });
  input.checked = checked;
  input.addEventListener("change", () => change(input.checked));
  made.append(input, label);
  return made;
}

// A menu of names to tick, and how many of them are.
function fillMenu(menu, title, names, isOn, change) {
  menu.querySelector("summary").textContent = `${title}: ${names.filter(isOn).length} of ${names.length}`;
  const boxes = names.map((name) => box(name, isOn(name), (on) => change(name, on)));
  const every = element("button", "all", { type: "button", "data-focus": `all ${title}` });
  every.addEventListener("click", () => change(null, true));
  menu.querySelector("div").replaceChildren(...boxes, every);
}

const NUMBER = /^[<>]?(-?[\d,]*\.?\d+(e[+-]?\d+)?)/;

function value(cell) {
  if (cell.dataset.value) return Number(cell.dataset.value);
  const found = NUMBER.exec(cell.textContent);
  return found ? parseFloat(found[1].replaceAll(",", "")) : NaN;
}

function sortRows(table, column, down) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    if (place === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  const body = table.tBodies[0];
  const keyed = [...body.querySelectorAll("tr:not(.setting)")].map((row) => {
    const cell = row.cells[column];
    return { row, below: row.nextElementSibling, number: value(cell), text: cell.textContent };
  });
  // what is no number comes last, in either direction
  keyed.sort((a, b) => {
    const strangers = isNaN(a.number) - isNaN(b.number);
    const order = isNaN(a.number) ? a.text.localeCompare(b.text) : a.number - b.number;
    return strangers || (down ? -order : order);
  });
  for (const { row, below } of keyed) {
    body.append(row);
    if (below?.classList.contains("setting")) body.append(below);
  }
}

// A table of texts and nodes. `sorted` is called with a column and whether it goes down.
function makeTable(columns, rows, sorted = () => {}) {
  const table = element("table");
  const head = table.createTHead().insertRow();
  columns.forEach((column, place) => {
    const cell = element("th", undefined, { scope: "col" });
    head.append(cell);
    if (column instanceof Node) {
      cell.append(column);
      return;
    }
    const button = element("button", column, { type: "button", class: "plain", "data-focus": `sort ${column}` });
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      sortRows(table, place, down);
      sorted(column, down);
    });
    cell.append(button);
  });
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const content of row) {
      const cell = line.insertCell();
      cell.append(content);
    }
  }
  return table;
}

function listTables() {
  const parts = data.tables.flatMap((table) => {
    const scroll = element("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title });
    scroll.append(makeTable(table.columns, table.rows));
    return [element("h2", table.title), scroll, ...table.notes.map((note) => element("p", note, { class: "note" }))];
  });
  byId("tables").replaceChildren(...parts);
}

// Whatever is made anew, who had the keyboard keeps it.
function keepingFocus(work) {
  const focus = document.activeElement?.dataset?.focus;
  work();
  if (focus && document.activeElement?.dataset?.focus !== focus) {
    document.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }
}
