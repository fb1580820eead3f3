// Numbers and elements as people read them.
fusec.text = (() => {
  const bytes = (n) => {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0;
    for (; n >= 999.5 && unit + 1 < units.length; ++unit) n /= 1000;
    return (unit === 0 || n >= 9.95 ? n.toFixed(0) : n.toFixed(1)) + " " + units[unit];
  };
  const time = (us) => (us >= 9995 ? (us / 1000).toFixed(1) + " ms" : us >= 99.5 ? us.toFixed(0) + " µs" : us.toFixed(1) + " µs");
  const count = (n, one, several = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : several}`;
  const flops = (n) => (n >= 1e12 ? (n / 1e12).toFixed(2) + " T" : n >= 1e9 ? (n / 1e9).toFixed(2) + " G" : (n / 1e6).toFixed(2) + " M") + "FLOP";
  const cut = (s, longest) => (s.length > longest ? s.slice(0, longest - 1) + "…" : s);

  // element("div.rows", {onclick}, child or text, ...); the text of a model is never read as HTML.
  const element = (what, attributes, ...children) => {
    const [tag, ...classes] = what.split(".");
    const e = document.createElement(tag);
    if (classes.length) e.className = classes.join(" ");
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
      else if (value !== undefined) e.setAttribute(key, value);
    }
    e.append(...children.flat().filter((c) => c !== null && c !== undefined));
    return e;
  };
  return { bytes, time, count, flops, cut, element };
})();
