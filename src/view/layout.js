// Places boxes: dagre lays out each level by itself, the inside of an open box before what holds it.
fusec.layout = (() => {
  const { cut, count, time, bytes } = fusec.text;
  const ROW = 15, CHAR = 6.75, PAD = 8, MOST_ROWS = 8, MOST_CHARS = 46;

  // The lines of a closed box: title, rows of nodes, footer.
  const label = (s, box) => {
    if (box.kind === "group") return groupLabel(s, box.group);
    const us = box.groups.reduce((sum, g) => sum + fusec.model.micros(g), 0);
    const nodes = box.groups.reduce((sum, g) => sum + g.nodes.length, 0);
    if (box.kind === "prepared")
      return { title: "prepared once for each set of weights", rows: [], footer: [`${count(box.groups.length, "group")}, no part of a launch`] };
    const launches = box.groups.reduce((sum, g) => sum + (g.cost ? g.cost.launches : 0), 0);
    if (box.kind === "section")
      return { title: `groups ${box.from + 1} to ${box.from + box.children.length}`, rows: [], footer: [`${count(nodes, "node")}, ${count(launches, "launch", "launches")}, ${time(us)}`] };
    const names = box.children.map((c) => (c.kind === "group" ? c.group.name : `× ${c.block.count}`));
    const rows = names.slice(0, MOST_ROWS).map((text) => ({ text: cut(text, MOST_CHARS) }));
    if (names.length > MOST_ROWS) rows.push({ text: `and ${names.length - MOST_ROWS} more` });
    return { title: `× ${box.block.count}`, rows, footer: [`${count(nodes, "node")}, ${count(launches, "launch", "launches")}, ${time(us)} in all`] };
  };

  const groupLabel = (s, g) => {
    const rows = g.nodes.slice(0, MOST_ROWS).map((n) => ({ text: cut(`${cut(s.nodes[n].name, 22)} = ${s.nodes[n].call}`, MOST_CHARS), kind: s.nodes[n].kind, node: n }));
    if (g.nodes.length > MOST_ROWS) rows.push({ text: `and ${g.nodes.length - MOST_ROWS} more` });
    const schedules = [...new Set(g.steps.map((i) => s.steps[i]).filter((t) => t.kernel !== undefined).map((t) => s.kernels[t.kernel].schedule))];
    const footer = schedules.length ? [cut(schedules.join(", "), MOST_CHARS)] : [];
    if (g.cost && g.cost.launches) footer.push(`${g.cost.launches > 1 ? g.cost.launches + " launches, " : ""}${bytes(fusec.model.moved(g))}, ${time(g.cost.predicted_us)}`);
    else footer.push(g.prepared ? "prepared once" : "no launch");
    return { title: cut(g.name, MOST_CHARS), rows, footer };
  };

  const sizeOf = (text) => {
    const widest = Math.max(text.title.length * 1.1, ...text.rows.map((r) => r.text.length), ...text.footer.map((f) => f.length));
    return { width: Math.max(90, widest * CHAR + 2 * PAD), height: ROW * (1 + text.rows.length + text.footer.length) + 2 * PAD };
  };

  // Gives every box x, y (of its corner, in its parent), width and height; returns the edges of all levels.
  const place = (s, list) => {
    const shown = fusec.tree.shownBoxes(list);
    const links = new Map();
    for (const [from, to, value, size] of s.raw.edges) {
      const a = shown.get(from), b = shown.get(to);
      if (!a || !b || a.box === b.box || a.box.kind === "prepared") continue; // what is prepared is a weight
      const back = fusec.tree.areCopies(a, b);
      const key = a.box.id + "→" + b.box.id;
      if (!links.has(key)) links.set(key, { from: a.box, to: b.box, values: [], bytes: 0, pairs: [], back: true });
      const link = links.get(key);
      link.back = link.back && back;
      if (link.values.length < 6) link.values.push(value);
      link.bytes += size;
      if (link.pairs.length < 50) link.pairs.push([from, to]);
    }
    const ofBox = new Map();
    const note = (boxes, parents) => boxes.forEach((box) => {
      ofBox.set(box.id, [...parents, box]);
      if (fusec.tree.isOpen(box)) note(box.children, [...parents, box]);
    });
    note(list, []);
    const size = placeLevel(s, list, [...links.values()], ofBox, 0);
    return { ...size, links: [...links.values()], ofBox };
  };

  const placeLevel = (s, list, links, ofBox, depth) => {
    const graph = new dagre.graphlib.Graph();
    const many = list.length > 120;
    graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 24, edgesep: 8, ranker: many ? "longest-path" : "network-simplex" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const box of list) {
      box.text = label(s, box);
      Object.assign(box, sizeOf(box.text));
      if (fusec.tree.isOpen(box)) {
        const inside = placeLevel(s, box.children, links, ofBox, depth + 1);
        box.width = Math.max(inside.width + 24, box.text.footer[0].length * CHAR + 2 * PAD, box.text.title.length * 8 + 160);
        box.inset = (box.width - inside.width) / 2;
        box.height = inside.height + 56;
      }
      graph.setNode(box.id, { width: box.width, height: box.height });
    }
    for (const link of links) {
      const a = ofBox.get(link.from.id)[depth], b = ofBox.get(link.to.id)[depth];
      if (a && b && a !== b && graph.hasNode(a.id) && graph.hasNode(b.id) && !link.back) graph.setEdge(a.id, b.id);
    }
    dagre.layout(graph);
    for (const box of list) {
      const at = graph.node(box.id);
      box.x = at.x - box.width / 2;
      box.y = at.y - box.height / 2;
    }
    const all = graph.graph();
    return { width: Math.max(0, all.width || 0), height: Math.max(0, all.height || 0) };
  };

  // Of a box among its parents: on the canvas.
  const position = (ofBox, box) => {
    let x = 0, y = 0;
    const parents = ofBox.get(box.id);
    parents.forEach((b, i) => {
      x += b.x + (i < parents.length - 1 ? b.inset : 0);
      y += b.y + (i < parents.length - 1 ? 44 : 0);
    });
    return { x, y };
  };
  return { place, position, ROW, PAD };
})();
