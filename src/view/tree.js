// What is drawn: a tree of boxes over one strategy's groups. Repeated layers are one box with a count; where a level has
// too many boxes even so, stretches of it are sections. Boxes with children are open or closed.
fusec.tree = (() => {
  const MOST = 240; // boxes of one level that can be laid out in a moment and read

  // Items [from, to) of a run: boxes of kind "group" and "block".
  const level = (s, from, to, blocks, path, copies) => {
    const list = [];
    let next = 0;
    for (let i = from; i < to; ) {
      const block = blocks[next];
      if (block && i === block.first) {
        list.push(blockBox(s, block, path, copies));
        i += block.length * block.count;
        ++next;
      } else {
        const group = s.groups[s.raw.items[shift(i, copies)]];
        list.push({ kind: "group", id: path + "g" + i, group, groups: [group] });
        ++i;
      }
    }
    return list;
  };

  // Places are those of first copies; a chosen copy lies further on.
  const shift = (place, copies) => place + copies.reduce((sum, c) => sum + c, 0);

  const blockBox = (s, block, path, copies) => {
    const id = `${path}b${block.first}_${block.length}`;
    const copy = fusec.state.copy.get(id) || 0;
    const inner = [...copies, copy * block.length];
    const box = { kind: "block", id, block, copy };
    box.children = level(s, block.first, block.first + block.length, block.inside, id + "/", inner);
    box.groups = [];
    for (let i = block.first; i < block.first + block.length * block.count; ++i) box.groups.push(s.groups[s.raw.items[shift(i, copies)]]);
    return box;
  };

  const sectioned = (list, path) => {
    if (list.length <= MOST) return list;
    const size = Math.ceil(Math.sqrt(list.length));
    const sections = [];
    for (let i = 0; i < list.length; i += size) {
      const children = list.slice(i, i + size);
      sections.push({ kind: "section", id: `${path}s${i}`, children, from: i, groups: children.flatMap((c) => c.groups) });
    }
    return sections;
  };

  const tree = (s) => {
    const list = sectioned(level(s, 0, s.raw.items.length, s.raw.blocks, "", []), "");
    const once = s.groups.filter((g) => g.prepared);
    if (once.length) list.unshift({ kind: "prepared", id: "prepared", groups: once });
    return list;
  };

  const isOpen = (box) => Boolean(box.children) && fusec.state.open.has(box.id);

  // The box that shows each group: the innermost one whose parents are all open. `copies` says of each open block around
  // it which copy the group is in: those that are not drawn are seen through the same place of the one that is.
  const shownBoxes = (list, map = new Map(), copies = []) => {
    for (const box of list) {
      if (!isOpen(box)) {
        for (const g of box.groups) map.set(g.index, { box, copies });
        continue;
      }
      if (box.kind !== "block") {
        shownBoxes(box.children, map, copies);
        continue;
      }
      const length = box.block.length;
      shownBoxes(box.children, map, [...copies, [box.id, box.copy]]);
      box.groups.forEach((g, i) => {
        if (Math.floor(i / length) === box.copy) return;
        const same = map.get(box.groups[box.copy * length + (i % length)].index);
        map.set(g.index, { box: same.box, copies: [...copies, [box.id, Math.floor(i / length)]] });
      });
    }
    return map;
  };

  // Are two groups in different copies of one block?
  const areCopies = (a, b) => a.copies.some(([id, copy]) => b.copies.some(([other, its]) => other === id && its !== copy));

  // Opens what hides a group, and picks the copy that it is in.
  const reveal = (s, index) => {
    const walk = (list) => {
      for (const box of list) {
        if (!box.groups.some((g) => g.index === index)) continue;
        if (!box.children) return;
        fusec.state.open.add(box.id);
        if (box.kind === "block") {
          const place = box.groups.findIndex((g) => g.index === index);
          fusec.state.copy.set(box.id, Math.floor(place / box.block.length));
        }
        return walk(find(tree(s), box.id).children);
      }
    };
    walk(tree(s));
  };
  const find = (list, id) => {
    for (const box of list) {
      if (box.id === id) return box;
      const inside = box.children && find(box.children, id);
      if (inside) return inside;
    }
    return null;
  };
  return { tree, isOpen, shownBoxes, areCopies, reveal, find };
})();
