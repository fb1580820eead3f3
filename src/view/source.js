// CUDA source with colours, linked line by line to the nodes that it came from.
fusec.source = (() => {
  const { element } = fusec.text;

  // highlight.js gives HTML of the whole text; spans that go over a line's end are closed and opened again.
  const highlightedLines = (text) => {
    const open = [];
    return hljs.highlight("cpp", text, true).value.split("\n").map((line) => {
      const begin = open.join("");
      for (const tag of line.match(/<span[^>]*>|<\/span>/g) || []) tag === "</span>" ? open.pop() : open.push(tag);
      return begin + line + "</span>".repeat(open.length);
    });
  };

  // `nodes`: those of the group, by place; `onnode(place)` when a line is clicked.
  const view = (kernel, nodes, onplaces) => {
    const pre = element("pre.source");
    const html = highlightedLines(kernel.source.replace(/\n$/, ""));
    html.forEach((line, i) => {
      const places = (kernel.lines && kernel.lines[i]) || [];
      const row = element("div.line", { "data-nodes": places.map((p) => nodes[p]?.name).join(" ") });
      row.innerHTML = line || " ";
      if (places.length) {
        row.classList.add("linked");
        row.title = places.map((p) => nodes[p]?.name).join(", ");
        row.addEventListener("click", () => onplaces(places));
      }
      pre.append(row);
    });
    return pre;
  };

  const mark = (pre, kernel, place) => {
    let first = null;
    [...pre.children].forEach((row, i) => {
      const marked = place !== null && ((kernel.lines && kernel.lines[i]) || []).includes(place);
      row.classList.toggle("marked", marked);
      if (marked && !first) first = row;
    });
    if (first) pre.scrollTop = first.offsetTop - pre.offsetTop - 60;
  };
  return { view, mark };
})();
