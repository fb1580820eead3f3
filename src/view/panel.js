// The panel beside the graph: a group with its kernels, an edge that was not fused, a repeated block.
fusec.panel = (() => {
  const { element, bytes, time, count, flops } = fusec.text;

  const facts = (pairs) => element("dl.facts", {}, pairs.filter(Boolean).flatMap(([k, v]) => [element("dt", {}, k), element("dd", {}, v)]));
  const chip = (kind) => element("span.chip", { style: `background:${fusec.model.colour(kind)}` }, kind);

  const group = (s, g, handlers) => {
    const cost = g.cost, part = g.partition;
    const all = [element("h2", {}, g.name)];
    all.push(facts([
      ["pattern kind", chip(g.pattern)],
      part && part.claimed_by && ["fused by pattern", part.claimed_by],
      cost && ["predicted", `${time(cost.predicted_us)}${cost.unfused_us > 0 && g.nodes.length > 1 ? `, its nodes alone ${time(cost.unfused_us)}` : ""}${cost.roofline ? `; bound by ${cost.roofline}` : ""}`],
      cost && ["memory", `${bytes(cost.bytes.read)} read, ${bytes(cost.bytes.written)} written`],
      cost && ["arithmetic", flops(cost.flops)],
      ["launches", g.prepared ? "none: computed once for each set of weights" : cost ? String(cost.launches) : "none"],
    ]));
    const list = element("ol.nodes");
    const rows = g.nodes.map((n) => {
      const node = s.nodes[n];
      const row = element("li", { title: `${node.op}, ${node.kind}`, "data-node": node.name }, chip(node.kind), ` ${node.name} = ${node.call}`);
      list.append(row);
      return row;
    });
    all.push(element("h3", {}, count(g.nodes.length, "node")), list);
    if (part && part.nodes.join() !== g.nodes.map((n) => s.nodes[n].name).join())
      all.push(element("p.note", {}, `Stands for these nodes of the file: ${part.nodes.join(", ")}.`));
    all.push(values("reads", g.inputs), values("writes", g.outputs));
    all.push(...kernels(s, g, rows));
    all.push(whyNot(s, s.refused.get(g.index), handlers));
    return all;
  };

  const values = (title, list) => element("details", list.length < 7 ? { open: "" } : {}, element("summary", {}, `${title} ${list.length}`), element("ul.values", {}, list.map((v) => element("li", {}, v))));

  // Every launch with its shape, and the source of the kernel that it takes at the symbols' hints and of the others.
  const kernels = (s, g, rows) => {
    const out = [];
    const nodes = g.nodes.map((n) => s.nodes[n]);
    for (const index of g.steps) {
      const step = s.steps[index];
      const ids = fusec.model.kernelsOf(step);
      if (!ids.length) {
        out.push(element("h3", {}, `launch ${index + 1}: ${step.what}`));
        continue;
      }
      const holder = element("div.kernel");
      const show = (k) => holder.replaceChildren(...kernel(s, step, index, k, nodes, rows));
      if (ids.length > 1)
        out.push(element("select.forms", { "aria-label": "kernel", onchange: (e) => show(Number(e.target.value)) }, ids.map((k) => element("option", { value: k }, `${s.kernels[k].name}${when(step, k)}`))));
      show(ids[0]);
      out.push(holder);
    }
    return out;
  };

  const when = (step, k) => {
    const form = (step.forms || []).find((f) => f.kernel === k);
    return form ? ` (where ${form.when})` : "";
  };

  const kernel = (s, step, index, k, nodes, rows) => {
    const kernel = s.kernels[k], taken = k === step.kernel;
    const measured = (fusec.model.data.profile?.kernels || []).find((p) => p.name === kernel.name);
    const threads = step.block && taken ? step.block[0] * step.block[1] * step.block[2] : 0;
    const pre = fusec.source.view(kernel, nodes, (places) => {
      rows.forEach((row, i) => row.classList.toggle("marked", places.includes(i)));
      rows[places[0]]?.scrollIntoView({ block: "nearest" });
    });
    rows.forEach((row, place) => (row.onclick = () => {
      rows.forEach((r) => r.classList.toggle("marked", r === row));
      fusec.source.mark(pre, kernel, place);
    }));
    return [
      element("h3", {}, `launch ${index + 1}: ${kernel.name}`),
      facts([
        ["schedule", kernel.schedule],
        taken && ["grid", `${step.grid.join(" × ")} blocks${step.grid_text === step.grid.join(", ") ? "" : ` = (${step.grid_text})`}`],
        taken && ["block", `${threads} threads${step.cluster.some((c) => c > 1) ? `, clusters of ${step.cluster.join(" × ")}` : ""}`],
        kernel.registers && ["registers", `${kernel.registers} a thread${kernel.stack ? `, ${bytes(kernel.stack)} of stack` : ""}`],
        taken && ["shared memory", `${bytes(step.shared + (kernel.static_shared || 0))} a block`],
        measured && ["on the emulator", `${bytes(measured.requested_bytes)} asked for, ${bytes(measured.distinct_bytes)} distinct, ${measured.bank_conflicts} bank conflicts`],
      ]),
      pre,
    ];
  };

  const refusal = (s, e, handlers) => {
    const name = (n) => element("a", { href: "#", onclick: (event) => { event.preventDefault(); handlers.node(n); } }, n);
    return element("li.refused", {},
      element("div", {}, name(e.from), " → ", name(e.to), ": ", element("b", {}, sentence(e.rule))),
      element("div.note", {}, `${stage(e)}${e.blocker ? `blocked by ${e.blocker}; ` : ""}one kernel would ${e.bytes_saved < 0 ? "cost" : "save"} ${bytes(Math.abs(e.bytes_saved))}${e.bytes_saved < 0 ? " more" : ""}${e.apart_us ? `; predicted ${time(e.joined_us)} together, ${time(e.apart_us)} apart` : ""}`),
      e.would_allow ? element("div.allow", {}, `what helps: ${e.would_allow}`) : null);
  };
  // As --explain says it: the three phases count from 1, and nobody was asked where a plan, a pattern or preparing decided.
  const stage = (e) => ["undecided", "given_plan", "claimed", "prepared"].includes(e.rule) ? "" : e.phase < 3 ? `phase ${e.phase + 1}, ` : "merging, ";
  const sentence = (rule) => fusec.model.data.rules?.[rule] || rule.replace(/_/g, " ");

  const whyNot = (s, list, handlers, most = 40) => {
    if (!list || !list.length) return element("p.note", {}, "No edge of it was refused.");
    const rows = (some) => some.map((e) => refusal(s, e, handlers));
    const shown = element("ul.whynot", {}, rows(list.slice(0, most)));
    const showAll = () => {
      shown.append(...rows(list.slice(most)));
      more.remove();
    };
    const more = list.length > most ? element("button.more", { onclick: showAll }, `show all ${list.length}`) : null;
    return element("div", {}, element("h3", {}, `Not fused: ${count(list.length, "edge")}`), shown, more);
  };

  const link = (s, l, handlers) => {
    const pairs = new Set(l.pairs.map(([a, b]) => `${a},${b}`));
    const list = s.ledger.filter((e) => pairs.has(`${s.groupOfNode.get(e.from)},${s.groupOfNode.get(e.to)}`));
    return [element("h2", {}, "Why is this edge not fused?"), values("carries", l.values), whyNot(s, list, handlers)];
  };

  const boxes = (s, box, handlers) => {
    const us = box.groups.reduce((sum, g) => sum + fusec.model.micros(g), 0);
    const title = box.kind === "block" ? `A block that is repeated ${box.block.count} times` : box.kind === "prepared" ? "Prepared once for each set of weights" : box.text.title;
    const length = box.kind === "block" ? box.block.length : box.groups.length;
    const shown = box.kind === "block" ? box.groups.slice(box.copy * length, (box.copy + 1) * length) : box.groups;
    return [element("h2", {}, title),
      facts([["groups", box.kind === "block" ? `${length} in each copy, ${box.groups.length} in all` : String(length)],
        box.kind !== "prepared" && ["predicted", `${time(us)} in all`]]),
      element("ul.groups", {}, shown.slice(0, 300).map((g) => element("li", {}, element("a", { href: "#", onclick: (e) => { e.preventDefault(); handlers.group(g.index); } }, g.name), ` ${count(g.nodes.length, "node")}, ${time(fusec.model.micros(g))}`)))];
  };
  return { group, link, boxes, whyNot };
})();
