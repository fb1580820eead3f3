// Draws the placed boxes as SVG, with d3 for zoom and pan.
fusec.draw = (() => {
  const { position, ROW, PAD } = fusec.layout;
  const svg = d3.select("#canvas");
  const stage = svg.append("g").attr("id", "stage");
  const zoom = d3.zoom().scaleExtent([0.02, 4]).on("zoom", () => stage.attr("transform", d3.event.transform));
  svg.call(zoom).on("dblclick.zoom", null);
  svg.append("defs").append("marker").attr("id", "arrow").attr("viewBox", "0 0 8 8").attr("refX", 7).attr("refY", 4)
    .attr("markerWidth", 6).attr("markerHeight", 6).attr("orient", "auto").append("path").attr("d", "M0,0 L8,4 L0,8 z").attr("fill", "#888");
  let placed = null;

  const draw = (s, handlers) => {
    const list = fusec.tree.tree(s);
    placed = fusec.layout.place(s, list);
    placed.list = list;
    stage.selectAll("*").remove();
    const boxes = stage.append("g");
    for (const box of list) drawBox(boxes, s, box, handlers);
    const edges = stage.append("g").lower();
    const front = stage.append("g");
    for (const link of placed.links) drawLink(link, placed.ofBox.get(link.from.id).length > 1 || placed.ofBox.get(link.to.id).length > 1 ? front : edges, handlers);
  };

  const drawBox = (parent, s, box, handlers) => {
    const at = position(placed.ofBox, box);
    const open = fusec.tree.isOpen(box);
    const g = parent.append("g").attr("class", `box ${box.kind}${open ? " open" : ""}`).attr("data-id", box.id).attr("transform", `translate(${at.x},${at.y})`);
    if (box.kind === "group") g.attr("data-group", box.group.name);
    g.append("rect").attr("class", "frame").attr("width", box.width).attr("height", box.height).attr("rx", 6);
    if (box.kind === "block" && !open)
      for (const step of [8, 4]) g.insert("rect", "rect.frame").attr("class", "behind").attr("width", box.width).attr("height", box.height).attr("rx", 6).attr("x", step).attr("y", step);
    const head = g.append("rect").attr("class", "head").attr("width", box.width).attr("height", ROW + PAD).attr("rx", 6);
    if (box.kind === "group") head.attr("fill", fusec.model.colour(box.group.pattern));
    g.append("text").attr("class", "title").attr("x", PAD).attr("y", ROW).text(box.text.title);
    g.on("click", () => { d3.event.stopPropagation(); handlers.box(box); });
    if (box.children) toggle(g, box, open, handlers);
    if (open) {
      g.append("text").attr("class", "footer").attr("x", PAD).attr("y", ROW + PAD + ROW).text(box.text.footer[0]);
      if (box.kind === "block") copies(g, box, handlers);
      for (const child of box.children) drawBox(parent, s, child, handlers);
      return;
    }
    box.text.rows.forEach((row, i) => {
      const y = PAD + ROW * (i + 1) + 4;
      if (row.kind) g.append("rect").attr("x", 1).attr("y", y - 2).attr("width", box.width - 2).attr("height", ROW).attr("fill", fusec.model.colour(row.kind)).attr("opacity", 0.55);
      g.append("text").attr("class", "row").attr("x", PAD).attr("y", y + 10).text(row.text);
    });
    box.text.footer.forEach((line, i) => g.append("text").attr("class", "footer").attr("x", PAD).attr("y", PAD + ROW * (box.text.rows.length + i + 1) + 14).text(line));
  };

  const toggle = (g, box, open, handlers) => {
    const button = g.append("g").attr("class", "toggle").attr("transform", `translate(${box.width - 26},4)`);
    button.append("rect").attr("width", 20).attr("height", 16).attr("rx", 4);
    button.append("text").attr("x", 10).attr("y", 12).attr("text-anchor", "middle").text(open ? "−" : "+");
    button.append("title").text(open ? "close" : "open");
    button.on("click", () => { d3.event.stopPropagation(); handlers.toggle(box); });
  };

  // Which copy of a repeated block is drawn.
  const copies = (g, box, handlers) => {
    const row = g.append("g").attr("class", "copies").attr("transform", `translate(${box.width - 130},4)`);
    const arrow = (x, text, by) => {
      const button = row.append("g").attr("transform", `translate(${x},0)`).attr("class", "toggle");
      button.append("rect").attr("width", 18).attr("height", 16).attr("rx", 4);
      button.append("text").attr("x", 9).attr("y", 12).attr("text-anchor", "middle").text(text);
      button.on("click", () => { d3.event.stopPropagation(); handlers.copy(box, (box.copy + by + box.block.count) % box.block.count); });
    };
    arrow(0, "‹", -1);
    row.append("text").attr("class", "footer").attr("x", 49).attr("y", 12).attr("text-anchor", "middle").text(`${box.copy + 1} of ${box.block.count}`);
    arrow(80, "›", 1);
  };

  const drawLink = (link, parent, handlers) => {
    const a = position(placed.ofBox, link.from), b = position(placed.ofBox, link.to);
    let path;
    const downwards = b.y >= a.y + link.from.height - 1;
    if (downwards && !link.back) {
      const x1 = a.x + link.from.width / 2, y1 = a.y + link.from.height, x2 = b.x + link.to.width / 2, y2 = b.y;
      const bend = Math.max(12, (y2 - y1) / 2);
      // Past what lies between, beside the boxes.
      const far = y2 - y1 > 120;
      const side = far ? Math.max(a.x + link.from.width, b.x + link.to.width) + 14 : 0;
      path = far ? `M${a.x + link.from.width - 14},${y1} C${side},${y1 + 30} ${side},${y1 + 30} ${side},${y1 + 60} L${side},${y2 - 40} C${side},${y2 - 12} ${b.x + link.to.width - 14},${y2 - 30} ${b.x + link.to.width - 14},${y2}`
                 : `M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`;
    } else {
      const side = Math.min(a.x, b.x) - 18;
      path = `M${a.x},${a.y + link.from.height / 2} C${side},${a.y + link.from.height / 2} ${side},${b.y + link.to.height / 2} ${b.x},${b.y + link.to.height / 2}`;
    }
    const g = parent.append("g").attr("class", link.back ? "link back" : "link").attr("data-from", link.from.id).attr("data-to", link.to.id);
    g.append("path").attr("class", "hit").attr("d", path);
    g.append("path").attr("class", "line").attr("d", path).attr("marker-end", "url(#arrow)");
    g.append("title").text(link.values.join("\n") + "\n" + fusec.text.bytes(link.bytes) + (link.back ? ", from one copy to the next" : ""));
    g.on("click", () => { d3.event.stopPropagation(); handlers.link(link); });
  };

  const view = () => document.getElementById("canvas").getBoundingClientRect();

  // The whole graph; a long one from its beginning, at a size that can be read.
  const fit = (whole) => {
    const { width, height } = view();
    if (!placed || !width) return;
    const all = Math.min(width / (placed.width + 60), height / (placed.height + 60));
    const readable = Math.min(1, width / (placed.width + 60));
    const scale = Math.min(1.4, whole || all >= 0.5 ? all : Math.max(readable, 0.3));
    const x = (width - placed.width * scale) / 2, y = scale > all ? 24 : Math.max(24, (height - placed.height * scale) / 2);
    svg.call(zoom.transform, d3.zoomIdentity.translate(x, y).scale(scale));
  };

  const center = (id) => {
    const parents = placed && placed.ofBox.get(id);
    if (!parents) return;
    const box = parents[parents.length - 1], at = position(placed.ofBox, box), { width, height } = view();
    const scale = Math.max(0.8, Math.min(1, d3.zoomTransform(svg.node()).k));
    svg.call(zoom.transform, d3.zoomIdentity.translate(width / 2 - (at.x + box.width / 2) * scale, height / 3 - at.y * scale).scale(scale));
  };

  const select = (id) => stage.selectAll(".box").classed("selected", function () { return this.getAttribute("data-id") === id; });
  const boxOf = (index) => {
    let found = null;
    for (const parents of placed.ofBox.values()) {
      const box = parents[parents.length - 1];
      if (box.kind === "group" && box.group.index === index) found = box;
    }
    return found;
  };
  return { draw, fit, center, select, boxOf };
})();
