"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const made = (name, text = "", className = "") => {
    const node = document.createElement(name);
    node.textContent = text;
    if (className) node.className = className;
    return node;
  };

  // Plots: colours are named in the data and looked up in the style sheet.
  const isColour = /color$/i;
  const coloured = (value, style, key = "") => {
    if (typeof value === "string") {
      return isColour.test(key) && value[0] === "@" ? style.getPropertyValue("--" + value.slice(1)).trim() : value;
    }
    if (Array.isArray(value)) return value.map((part) => coloured(part, style, key));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, coloured(part, style, name)]));
  };
  const scaled = (trace, style) => {
    if (Array.isArray(trace.colorscale)) {
      trace.colorscale = trace.colorscale.map(([at, name]) => [at, style.getPropertyValue("--" + name.slice(1)).trim()]);
    }
    return trace;
  };
  // Rows of a legend beyond the first: its entries are as wide as the widest, and letters about 7 pixels.
  const moreRows = (figure, width) => {
    const names = figure.layout.showlegend === false ? [] : figure.data.filter((trace) => trace.name).map((trace) => trace.name);
    const widest = Math.max(0, ...names.map((name) => name.length)) * 7 + 48;
    const columns = Math.max(1, Math.floor(width / widest));
    return Math.max(0, Math.ceil(names.length / columns) - 1);
  };
  const laidOut = (figure, style, width, room) => {
    const ink = style.getPropertyValue("--ink").trim();
    const muted = style.getPropertyValue("--muted").trim();
    const grid = style.getPropertyValue("--grid").trim();
    const paper = style.getPropertyValue("--paper").trim();
    const own = coloured(figure.layout, style);
    const legend = 20 * moreRows(figure, room);
    const axis = (given = {}) => ({
      fixedrange: true, automargin: true, gridcolor: grid, zerolinecolor: grid, linecolor: grid, ...given,
      title: { ...(given.title || {}), standoff: 8, font: { size: 12, color: muted } },
      tickfont: { size: 12, color: muted },
    });
    return {
      margin: { l: 48, r: 12, t: 24, b: own.showlegend === false ? 44 : 76 + legend }, dragmode: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
      legend: { orientation: "h", xref: "container", x: 0.01, yref: "container", y: 0, yanchor: "bottom", font: { color: ink } },
      hoverlabel: { align: "left", bgcolor: paper, bordercolor: muted, font: { color: ink } },
      bargap: 0.06, ...own, height: (own.height || 300) + legend, ...(width ? { width } : {}), xaxis: axis(own.xaxis), yaxis: axis(own.yaxis),
    };
  };
  const draw = (style, isPrinted) => Promise.all(data.figures.map((figure) => {
    const plot = document.getElementById("plot-" + figure.id);
    const width = isPrinted ? (plot.closest(".wide") ? 680 : 320) : undefined;
    const traces = figure.data.map((trace) => scaled(coloured(trace, style), style));
    const options = { displayModeBar: false, responsive: !width, showTips: false };
    return Plotly.react(plot, traces, laidOut(figure, style, width, width || plot.clientWidth), options);
  }));
  const screen = () => getComputedStyle(document.documentElement);
  if (data.figures.length) {
    draw(screen()).then(() => {
      for (const figure of data.figures) {
        if (!figure.picks) continue;
        const plot = document.getElementById("plot-" + figure.id);
        plot.classList.add("picks");
        plot.on("plotly_click", (event) => {
          const picked = event.points[0] && event.points[0].customdata;
          if (picked === undefined || picked === "") return;
          if (figure.picks === "entry") show(picked);
          else choose(figure.listed, figure.picks, picked);
        });
      }
      document.documentElement.classList.add("drawn");
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(screen()));
  }
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])").filter((node) => !node.closest(".figure"));
    folded.forEach((node) => { node.open = true; });
    draw(getComputedStyle(one(".light")), true);
  });
  addEventListener("afterprint", () => {
    folded.forEach((node) => { node.open = false; });
    draw(screen());
  });

  // Tables: sorted by a header, filtered by text, outcome, and what a plot chose.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const key = cell.dataset.key;
    if (key !== undefined) return Number(key);
    return cell.classList.contains("number") ? NaN : cell.textContent.trim().toLowerCase();
  };
  const before = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  // What has no number stays last, whichever way the others are sorted.
  const compared = (a, b, isDown) => {
    const [isLast, isOtherLast] = [Number.isNaN(a), Number.isNaN(b)];
    return isLast || isOtherLast ? isLast - isOtherLast : isDown ? before(b, a) : before(a, b);
  };
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, column) => {
      const button = made("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const isDown = head.getAttribute("aria-sort") === "ascending";
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
        rows.sort((a, b) => compared(a[0], b[0], isDown));
        body.append(...rows.map((pair) => pair[1]));
      });
    });
  }
  const filters = {};
  for (const controls of all(".controls")) {
    const table = document.getElementById(controls.dataset.for);
    const rows = [...table.tBodies[0].rows];
    const texts = new Map(rows.map((row) => [row, [...row.cells].map((cell) => cell.textContent.toLowerCase()).join("\n")]));
    const text = one(".filter", controls), outcome = one(".outcome", controls), range = one(".range", controls);
    // What a plot chose, and the outcome that was chosen before.
    let span = null, earlier = "";
    const apply = () => {
      const wanted = text.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        const value = span ? Number(row.dataset[span.mark]) : 0;
        row.hidden = !(
          texts.get(row).includes(wanted) &&
          (!outcome.value || one(`[data-outcome="${outcome.value}"]`, row)) &&
          (!span || (value >= span.low && value < span.high))
        );
        shown += !row.hidden;
      }
      one(".count", controls).textContent = `${shown} of ${rows.length} rows`;
      range.hidden = !span;
      const [low, high] = span ? [span.low, span.high].map((end) => Number(end.toPrecision(12))) : [];
      if (span) range.textContent = `${span.mark} ${low} to below ${high}  ✕`;
    };
    text.addEventListener("input", apply);
    outcome.addEventListener("input", apply);
    range.addEventListener("click", () => { span = null; outcome.value = earlier; apply(); text.focus(); });
    filters[table.id] = (mark, [low, high, kind]) => {
      if (!span) earlier = outcome.value;
      span = { mark, low, high };
      outcome.value = kind || earlier;
      apply();
      controls.scrollIntoView({ block: "start" });
      range.focus({ preventScroll: true });
    };
    apply();
  }
  const choose = (table, mark, span) => filters[table] && filters[table](mark, span);

  // Details of an episode, opened from a plot, a table or a video.
  const dialog = document.getElementById("details");
  let current = null, urls = [];
  const sourceOf = (id) => {
    const clip = document.getElementById(id);
    const source = clip.getAttribute("src") || clip.getAttribute("href");
    const head = "data:video/mp4;base64,";
    if (!source.startsWith(head)) return source;
    const bytes = Uint8Array.from(atob(source.slice(head.length)), (letter) => letter.charCodeAt(0));
    urls.push(URL.createObjectURL(new Blob([bytes], { type: "video/mp4" })));
    return urls[urls.length - 1];
  };
  const clear = () => {
    all("video", dialog).forEach((video) => { video.pause(); video.removeAttribute("src"); });
    urls.forEach((url) => URL.revokeObjectURL(url));
    urls = [];
    one(".sides", dialog).replaceChildren();
  };
  const sideNode = (side) => {
    const node = made("div");
    if (side.name) node.append(made("h3", side.name));
    const clips = made("div", "", "clips");
    if (side.clips.length) node.append(clips);
    for (const [id, label] of side.clips) {
      const video = made("video"), figure = made("figure");
      Object.assign(video, { controls: true, muted: true, playsInline: true, src: sourceOf(id) });
      video.setAttribute("aria-label", label);
      figure.append(video, made("figcaption", label));
      clips.append(figure);
    }
    const list = made("dl", "", "facts");
    for (const line of side.lines) {
      const pair = made("div");
      pair.append(made("dt", line.name), made("dd", line.text));
      list.append(pair);
    }
    node.append(list);
    for (const [text, href] of side.links) {
      const link = made("a", text);
      link.href = href;
      node.append(link);
    }
    return node;
  };
  const show = (key) => {
    const entry = data.entries[key];
    if (!entry) return;
    clear();
    current = key;
    one("h2", dialog).textContent = entry.title;
    one(".sides", dialog).append(...entry.sides.map(sideNode));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    one("h2", dialog).focus();
  };
  const step = (by) => {
    const row = document.getElementById("row-" + current);
    const keys = row ? all("tr[data-entry]:not([hidden])", row.parentNode).map((other) => other.dataset.entry) : [];
    const next = keys[keys.indexOf(current) + by];
    if (next) show(next);
  };
  one(".before", dialog).addEventListener("click", () => step(-1));
  one(".after", dialog).addEventListener("click", () => step(1));
  one(".close", dialog).addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.target.tagName === "VIDEO") return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  dialog.addEventListener("close", clear);
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("a.open, tr[data-entry]");
    if (!opener || dialog.contains(opener)) return;
    const own = event.target.closest("a, button");
    if (own && own !== opener) return;
    event.preventDefault();
    show(opener.dataset.entry || opener.closest("tr").dataset.entry);
  });
})();
