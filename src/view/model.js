// The data of the page, one strategy at a time: the partition, report and ledger that fusec writes, joined by group.
fusec.model = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  // Which groups (report: of a run alone) have which costs, decisions and refused edges.
  const prepared = new Map();
  const strategy = (name) => {
    if (prepared.has(name)) return prepared.get(name);
    const raw = data.strategies[name];
    const part = new Map(raw.partition.groups.map((g) => [g.name, g]));
    const cost = new Map(raw.report.groups.map((g) => [g.name, g]));
    const s = { name, raw, partition: raw.partition, report: raw.report, ledger: raw.ledger.edges };
    s.steps = raw.steps || [];
    s.kernels = raw.kernels || [];
    s.nodes = raw.nodes;
    s.groups = raw.groups.map((g, index) => ({ ...g, index, partition: part.get(g.name), cost: cost.get(g.name) }));
    s.groupOfNode = new Map();
    for (const g of s.groups) for (const n of g.nodes) if (!s.groupOfNode.has(s.nodes[n].name)) s.groupOfNode.set(s.nodes[n].name, g.index);
    s.refused = new Map(s.groups.map((g) => [g.index, []]));
    for (const e of s.ledger) {
      for (const g of new Set([s.groupOfNode.get(e.from), s.groupOfNode.get(e.to)])) if (g !== undefined) s.refused.get(g).push(e);
    }
    s.firstGroupOfKernel = new Map();
    for (const g of s.groups)
      for (const step of g.steps)
        for (const k of kernelsOf(s.steps[step])) if (!s.firstGroupOfKernel.has(k)) s.firstGroupOfKernel.set(k, g.index);
    s.places = folded(raw.blocks, raw.items.map((_, i) => i));
    prepared.set(name, s);
    return s;
  };

  // Every place of a run as the one that stands for it in the first copy of its block.
  const folded = (blocks, places) => {
    for (const block of blocks) {
      folded(block.inside, places);
      for (let i = block.first + block.length; i < block.first + block.length * block.count; ++i) places[i] = places[i - block.length];
    }
    return places;
  };

  // All forms of a launch; the first is the one at the hints of the symbols.
  const kernelsOf = (step) => {
    const list = [step.kernel, step.general, ...(step.forms || []).map((f) => f.kernel)];
    return [...new Set(list.filter((k) => k !== undefined && k !== 4294967295))];
  };

  const micros = (group) => (group.cost ? group.cost.predicted_us : 0);
  const moved = (group) => (group.cost ? group.cost.bytes.read + group.cost.bytes.written : 0);
  const colour = (kind) => data.colours[kind] || "#ffffff";
  return { data, strategy, kernelsOf, micros, moved, colour, names: ["none", "tvm", "full"] };
})();
