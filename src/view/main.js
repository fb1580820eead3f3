// State, header, tabs and what clicks do.
fusec.state = { strategy: fusec.model.data.asked, open: new Set(), copy: new Map(), tab: "overview", group: null };
(() => {
  const { element, bytes, time, count } = fusec.text;
  const { data, names } = fusec.model;
  const state = fusec.state;
  const byId = (id) => document.getElementById(id);
  const current = () => fusec.model.strategy(state.strategy);
  let shown = null; // what the tab "selection" shows

  const handlers = {
    box: (box) => {
      if (box.kind === "group") return select(box.group.index);
      fusec.draw.select(box.id);
      open("selection", () => fusec.panel.boxes(current(), box, handlers));
    },
    toggle: (box) => {
      if (!state.open.delete(box.id)) state.open.add(box.id);
      redraw();
      fusec.draw.center(box.id);
    },
    copy: (box, copy) => {
      state.copy.set(box.id, copy);
      redraw();
    },
    link: (l) => open("selection", () => fusec.panel.link(current(), l, handlers)),
    group: (index) => goTo(index),
    node: (name) => goTo(current().groupOfNode.get(name)),
  };

  const select = (index) => {
    state.group = index;
    const box = fusec.draw.boxOf(index);
    fusec.draw.select(box ? box.id : null);
    open("selection", () => fusec.panel.group(current(), current().groups[index], handlers));
  };
  const goTo = (index) => {
    if (index === undefined) return;
    if (!current().groups[index].prepared) {
      fusec.tree.reveal(current(), index);
      redraw();
      const box = fusec.draw.boxOf(index);
      if (box) fusec.draw.center(box.id);
    }
    select(index);
  };

  const redraw = () => fusec.draw.draw(current(), handlers);

  // --- header: what was fused and what that saves, at the first glance
  const headline = () => {
    const s = current(), totals = s.report.totals, none = totals.none, own = totals[state.strategy];
    const moved = (t) => t.bytes.read + t.bytes.written;
    const figure = (before, after, what) => element("span.figure", {}, before === after ? after : element("span", {}, element("s", {}, before), " → ", element("b", {}, after)), ` ${what}`);
    const gain = none.predicted_us / own.predicted_us;
    byId("headline").replaceChildren(element("h1", {}, data.model), element("span.gain", { title: "predicted time with every operator alone, over predicted time as fused" }, `predicted ${gain.toFixed(2)}× faster`),
      figure(`${none.launches.toLocaleString("en")}`, `${own.launches.toLocaleString("en")}`, "launches"),
      figure(time(none.predicted_us), time(own.predicted_us), "predicted"),
      figure(bytes(moved(none)), bytes(moved(own)), "moved"),
      element("span.where", {}, `${count(data.file_nodes, "operator")}, ${data.chip || data.arch}${data.symbols.length ? ", " + data.symbols.map(([n, v]) => `${n} = ${v}`).join(", ") : ""}`));
  };
  const strategies = () => byId("strategies").replaceChildren(...names.map((name) => element("button", { role: "radio", "aria-checked": String(name === state.strategy), "data-strategy": name,
    title: { none: "every operator alone", tvm: "the groups of TVM's FuseOps", full: "all of fusec" }[name], onclick: () => choose(name) }, name)));

  const choose = (name) => {
    state.strategy = name;
    state.open.clear();
    state.copy.clear();
    state.group = null;
    shown = null;
    start();
  };

  // --- tabs
  const tabs = [["overview", "Overview"], ["selection", "Selection"], ["whynot", "Not fused"], ["memory", "Memory"]];
  const open = (tab, content) => {
    if (content) shown = content;
    state.tab = tab;
    byId("tabs").replaceChildren(...tabs.map(([id, title]) => element("button", { role: "tab", "aria-selected": String(id === tab), "data-tab": id, onclick: () => open(id) }, title)));
    byId("content").replaceChildren(...pages[tab]());
    byId("content").scrollTop = 0;
  };
  const pages = {
    overview: () => fusec.charts.bars(current(), handlers),
    selection: () => (shown ? shown() : [element("p.note", {}, "Click a group, an edge or a repeated block.")]),
    whynot: () => {
      const s = current(), list = [...s.ledger].sort((a, b) => b.bytes_saved - a.bytes_saved);
      return [element("h2", {}, "Edges that were not fused"), element("p.note", {}, "The most bytes first. Each says what one kernel would save and what would have to change."), fusec.panel.whyNot(s, list, handlers, 200)];
    },
    memory: () => fusec.charts.memory(current()),
  };

  // --- search: nodes, ops, groups and kernels
  let hits = [], at = -1;
  const search = () => {
    const s = current(), wanted = byId("search").value.trim().toLowerCase();
    at = -1;
    hits = wanted === "" ? [] : s.groups.filter((g) => g.name.toLowerCase().includes(wanted)
      || g.nodes.some((n) => s.nodes[n].name.toLowerCase().includes(wanted) || s.nodes[n].op.includes(wanted))
      || (g.partition && g.partition.nodes.some((n) => n.toLowerCase().includes(wanted)))
      || g.steps.some((i) => fusec.model.kernelsOf(s.steps[i]).some((k) => s.kernels[k].name.toLowerCase().includes(wanted))));
    byId("found").textContent = wanted === "" ? "" : `${count(hits.length, "group")}`;
  };
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || !hits.length) return;
    at = (at + 1) % hits.length;
    goTo(hits[at].index);
    byId("found").textContent = `${at + 1} of ${hits.length}`;
  });
  byId("fit").addEventListener("click", () => fusec.draw.fit(true));

  // A graph that is small enough to be read whole opens its blocks; a larger one is shown by blocks.
  const openSmall = (s) => {
    if (s.raw.items.length > 40) return;
    for (const box of fusec.tree.tree(s)) if (box.kind === "block" && box.children.length <= 8) state.open.add(box.id);
  };

  const start = () => {
    openSmall(current());
    headline();
    strategies();
    redraw();
    fusec.draw.fit(false);
    open("overview");
    search();
  };
  byId("legend").replaceChildren(...Object.entries(data.colours).map(([kind, colour]) => element("span.chip", { style: `background:${colour}` }, kind)));
  start();
})();
