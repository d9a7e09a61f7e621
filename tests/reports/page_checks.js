// What a report's page must hold, as a browser lays it out. The value is a list of complaints.
(() => {
  const complaints = [];
  const name = (element) => element.tagName + (element.id ? "#" + element.id : "") + " " +
    (element.textContent || "").trim().slice(0, 40);
  for (const details of document.querySelectorAll("details")) details.open = true;

  // Nothing is wider than the window, but inside of what scrolls by itself.
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > room) complaints.push(`the page scrolls sideways: ${room}`);
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest(".scroll") && !element.matches(".scroll")) continue;
    const box = element.getBoundingClientRect();
    if (box.right > room + 0.5 || box.left < -0.5) complaints.push(`too wide: ${name(element)}`);
  }

  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) complaints.push(`id twice: ${id}`);
  for (const link of document.querySelectorAll("a"))
    if (!ids.includes(link.getAttribute("href").slice(1))) complaints.push(`leads nowhere: ${name(link)}`);

  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) complaints.push(`a level of headings is left out: ${name(heading)}`);
    level = own;
  }

  for (const svg of document.querySelectorAll("svg")) {
    if (svg.getAttribute("role") !== "img") complaints.push(`no role: ${name(svg)}`);
    for (const part of ["title", "desc"]) {
      const element = svg.querySelector(":scope > " + part);
      if (!element || !element.textContent.trim()) complaints.push(`no ${part}: ${name(svg)}`);
      else if (!svg.getAttribute("aria-labelledby").split(" ").includes(element.id))
        complaints.push(`its ${part} is not named: ${name(svg)}`);
    }
    const frame = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll(".mark, .heat")].filter((mark) => !mark.closest(".legend"));
    if (!marks.some((mark) => mark.getBoundingClientRect().width > 1)) complaints.push(`empty: ${name(svg)}`);
    for (const mark of marks) {
      const box = mark.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
          box.bottom > frame.bottom + 1)
        complaints.push(`a mark outside of ${name(svg)}`);
    }
    const texts = [...svg.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    for (const [text, box] of texts)
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
        complaints.push(`text outside of its drawing: ${name(svg)}: ${text.textContent}`);
    for (let i = 0; i < texts.length; ++i)
      for (let k = i + 1; k < texts.length; ++k) {
        const a = texts[i][1], b = texts[k][1];
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 0.5 && high > 3)  // a line's box is higher than its letters
          complaints.push(`texts overlap: ${name(svg)}: ${texts[i][0].textContent} / ${texts[k][0].textContent}`);
      }
  }

  // Contrast, as WCAG 2 defines it.
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour).length === 3 || channels(colour)[3] > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const grounds_of = (text) => {
    if (!(text instanceof SVGElement)) return [ground(text)];
    const cell = text.closest(".cell") && text.parentElement.querySelector("rect");
    if (cell) return [getComputedStyle(cell).fill];
    const shade = text.ownerSVGElement.querySelector(".margin");
    return shade ? [ground(text), getComputedStyle(shade).fill] : [ground(text)];
  };
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!own || element.matches("title, desc")) continue;
    const style = getComputedStyle(element);
    const ink = luminance(element instanceof SVGElement ? style.fill : style.color);
    for (const colour of grounds_of(element)) {
      const paper = luminance(colour);
      const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      if (contrast < 4.5) complaints.push(`contrast ${contrast.toFixed(2)}: ${name(element)}`);
    }
  }
  return [...new Set(complaints)];
})()
