// Bars of predicted time and other figures by group, repeated layers together, and the arena over the steps of a launch.
fusec.charts = (() => {
  const { element, bytes, time, flops, count } = fusec.text;

  const metrics = (s) => {
    const list = [
      ["predicted time", (g) => g.cost?.predicted_us || 0, time],
      ["bytes read and written", (g) => fusec.model.moved(g), bytes],
      ["arithmetic", (g) => g.cost?.flops || 0, flops],
    ];
    const profile = new Map((fusec.model.data.profile?.kernels || []).map((p) => [p.name, p]));
    if (profile.size) {
      const sum = (g, f) => g.steps.map((i) => s.steps[i]).filter((t) => t.kernel !== undefined)
        .reduce((all, t) => all + (profile.has(s.kernels[t.kernel].name) ? f(profile.get(s.kernels[t.kernel].name)) : 0), 0);
      list.push(["bytes asked for, on the emulator", (g) => sum(g, (p) => p.requested_bytes), bytes]);
      list.push(["warp instructions, on the emulator", (g) => sum(g, (p) => Object.values(p.instructions).reduce((a, b) => a + b, 0)), (n) => n.toLocaleString("en")]);
    }
    return list;
  };

  const bars = (s, handlers) => {
    const list = metrics(s);
    const body = element("div.bars");
    const draw = (which) => {
      const [, value, text] = list[which];
      const rows = new Map();
      s.raw.items.forEach((index, i) => {
        const row = rows.get(s.places[i]) || { g: s.groups[index], v: 0, times: 0 };
        rows.set(s.places[i], { ...row, v: row.v + value(s.groups[index]), times: row.times + 1 });
      });
      const sorted = [...rows.values()].filter((r) => r.v > 0).sort((a, b) => b.v - a.v);
      const total = sorted.reduce((sum, r) => sum + r.v, 0), most = sorted[0]?.v || 1;
      body.replaceChildren(element("p.note", {}, `${text(total)} in all, the largest first; × counts repeated layers`),
        ...sorted.slice(0, 60).map(({ g, v, times }) => element("button.bar", { onclick: () => handlers.group(g.index), title: g.name },
          element("span.name", {}, times > 1 ? element("b", {}, `${times} × `) : null, g.name),
          element("span.track", {}, element("span.fill", { style: `width:${(100 * v) / most}%;background:${fusec.model.colour(g.pattern)}` })),
          element("span.value", {}, `${text(v)} · ${((100 * v) / total).toFixed(0)} %`))),
        sorted.length > 60 ? element("p.note", {}, `and ${sorted.length - 60} more`) : "");
    };
    draw(0);
    return [element("h2", {}, "Where time goes"), element("select", { "aria-label": "figure", onchange: (e) => draw(Number(e.target.value)) }, list.map(([name], i) => element("option", { value: i }, name))), body];
  };

  const svg = (tag, attributes, ...children) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    e.append(...children);
    return e;
  };

  // Steps to the right, addresses upwards: a rectangle is a value, where it lies and as long as it is alive.
  const memory = (s) => {
    const arena = s.raw.arena;
    if (!arena || !arena.length) return [element("h2", {}, "Memory"), element("p.note", {}, "A launch needs no workspace.")];
    const W = 760, H = 300, steps = Math.max(1, s.steps.length), size = s.raw.workspace || 1;
    const x = (step) => (W * step) / steps, y = (at) => H - (H * at) / size;
    const chart = svg("svg", { class: "arena", viewBox: `0 0 ${W} ${H + 4}`, preserveAspectRatio: "none" });
    const says = element("p.note", {}, "Point at a rectangle.");
    arena.forEach((v, i) => {
      const name = v.value || "scratch memory";
      const rect = svg("rect", { x: x(v.first), y: y(v.offset + v.bytes), width: Math.max(1, x(v.last + 1) - x(v.first) - 0.5), height: Math.max(1, y(v.offset) - y(v.offset + v.bytes)), fill: `hsl(${(i * 67) % 360} 55% 72%)`, "data-value": name });
      const tell = () => (says.textContent = `${name}: ${bytes(v.bytes)} at ${bytes(v.offset)}, launches ${v.first + 1} to ${v.last + 1}`);
      rect.addEventListener("mouseenter", tell);
      rect.addEventListener("click", tell);
      chart.append(rect);
    });
    return [element("h2", {}, "Memory of a launch"),
      element("p", {}, `Workspace ${bytes(size)}; at least ${bytes(s.report.memory?.least_workspace_bytes ?? size)} are alive at once. ${count(arena.length, "value")} over ${count(s.steps.length, "launch", "launches")}: steps to the right, addresses upwards.`),
      chart, says];
  };
  return { bars, memory };
})();
