"use strict";
// Sorting by a column; without this script the tables stand in their first order.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.textContent.trim() || head.dataset.sort === "no") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const compare = (a, b) => a.localeCompare(b, "en", { numeric: true });
      const number = (text) => (text === "" ? -Infinity : Number(text));
      const rows = [...table.tBodies[0].rows];
      const numeric = rows.every((row) => !Number.isNaN(number(value(row))));
      rows.sort((a, b) => (numeric ? number(value(a)) - number(value(b)) : compare(value(a), value(b))) * (up ? 1 : -1));
      table.tBodies[0].append(...rows);
    });
  });
}
// A closed part would print as its first line.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((part) => (part.open = true));
});
addEventListener("afterprint", () => opened.forEach((part) => (part.open = false)));
