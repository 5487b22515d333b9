// Sorting, and unfolding for paper. Without it the page lacks nothing else.
(() => {
  const live = document.getElementById("live");

  function key(row, column) {
    const cell = row.cells[column];
    if (cell.dataset.v === undefined) return cell.textContent.trim();
    // A missing number stands last when rising.
    return cell.dataset.v === "" || cell.dataset.v === "nan" ? Infinity : Number(cell.dataset.v.replace("inf", "Infinity"));
  }

  function compare(a, b) {
    if (typeof a === "number") return a === b ? 0 : a - b;
    return a.localeCompare(b, "en", { numeric: true });
  }

  function sort(table, heads, column) {
    const rising = heads[column].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[column].setAttribute("aria-sort", rising ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    rows.sort((x, y) => (rising ? compare(x[0], y[0]) : compare(y[0], x[0])));
    body.append(...rows.map((pair) => pair[1]));
    const name = heads[column].querySelector(".h").textContent.trim();
    live.textContent = "Sorted by " + name + ", " + (rising ? "ascending" : "descending") + ".";
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, heads, column));
    });
  }

  const folded = () => document.querySelectorAll("details");
  addEventListener("beforeprint", () => folded().forEach((one) => { one.dataset.open = one.open; one.open = true; }));
  addEventListener("afterprint", () => folded().forEach((one) => { one.open = one.dataset.open === "true"; }));
})();
