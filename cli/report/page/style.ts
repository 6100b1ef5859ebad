/** The style sheet of the page, which the page names by its hash. The suite checks its contrast in both themes. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #f6f6f3; --paper: #ffffff; --ink: #191c1f; --soft: #565e66; --line: #dfdfd9; --wash: #efefea;
  --accent: #0a5f66; --bad: #b3261e; --warn: #8a5200; --good: #256f4a;
  --bad-wash: #fdecea; --warn-wash: #fdf2df; --good-wash: #e7f3ec;
  --bar-good: #5c9c7c; --bar-warn: #d79a3a; --bar-bad: #c8453c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #131618; --paper: #1b1f22; --ink: #e9ebec; --soft: #a7b0b8; --line: #31373c; --wash: #23282c;
    --accent: #7fd0d6; --bad: #ff9a90; --warn: #f2be6a; --good: #82d3a8;
    --bad-wash: #3a2220; --warn-wash: #362b19; --good-wash: #1b3026;
    --bar-good: #4e9a76; --bar-warn: #c98f35; --bar-bad: #e0655b;
  }
}
* { box-sizing: border-box; }
html { background: var(--ground); color: var(--ink); font: 16px/1.5 Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; scroll-padding-top: 16px; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
body { margin: 0 auto; max-width: 1320px; padding: 32px 40px 96px; }
h1, h2, h3, p, dl, dd, ol, figure { margin: 0; }
h1 { font-size: 2.25rem; line-height: 1.15; font-weight: 700; letter-spacing: -0.025em; overflow-wrap: anywhere; }
h2 { font-size: 1.375rem; line-height: 1.25; font-weight: 650; letter-spacing: -0.015em; }
h3 { font-size: 1rem; font-weight: 650; margin: 24px 0 8px; }
a { color: var(--accent); text-underline-offset: 3px; }
small { font-size: 0.8125rem; color: var(--soft); }
code { font: 0.875em ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
[hidden] { display: none !important; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 16px; top: 8px; padding: 8px 16px; background: var(--paper); z-index: 1; }
header { display: flex; flex-wrap: wrap; gap: 8px 32px; align-items: end; justify-content: space-between; }
.brand { display: flex; align-items: center; gap: 8px; color: var(--soft); font-size: 0.875rem; font-weight: 600; margin-bottom: 8px; }
.brand svg { width: 20px; height: 20px; fill: none; stroke: var(--accent); stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.as-of { color: var(--soft); font-size: 0.9375rem; font-variant-numeric: tabular-nums; }
#age { color: var(--warn); font-weight: 600; }
nav { margin-top: 24px; padding-top: 12px; border-top: 1px solid var(--line); }
nav ul { display: flex; flex-wrap: wrap; gap: 4px 24px; margin: 0; padding: 0; list-style: none; font-size: 0.9375rem; }
nav a { text-decoration: none; font-weight: 550; display: inline-block; padding: 4px 0; }
nav a:hover { text-decoration: underline; }
section { margin-top: 56px; }
section > .lead { color: var(--soft); margin: 4px 0 16px; max-width: 75ch; }
.verdict { margin-top: 28px; padding: 28px 32px; border-radius: 16px; background: var(--paper); border: 1px solid var(--line); border-left: 6px solid var(--good); }
.verdict.watch { border-left-color: var(--bar-warn); }
.verdict.act { border-left-color: var(--bar-bad); }
.verdict h2 { font-size: 1.625rem; }
.attention { list-style: none; padding: 0; margin-top: 16px; }
.attention li { display: grid; grid-template-columns: 76px 1fr; gap: 0 16px; padding: 12px 0; border-top: 1px solid var(--line); }
.attention li:first-child { border-top: 0; }
.attention .s { justify-self: start; align-self: start; margin-top: 1px; }
.attention a { color: inherit; font-weight: 600; text-decoration-color: var(--line); text-decoration-thickness: 2px; }
.attention a:hover { text-decoration-color: currentColor; }
.attention p { color: var(--soft); font-size: 0.9375rem; max-width: 90ch; overflow-wrap: anywhere; }
.attention p.names { color: var(--ink); }
.figures { display: grid; grid-template-columns: repeat(6, 1fr); margin-top: 24px; border: 1px solid var(--line); border-radius: 16px; background: var(--paper); overflow: hidden; }
.figures div { padding: 18px 24px; box-shadow: 1px 1px 0 0 var(--line); }
.figures dt { color: var(--soft); font-size: 0.875rem; }
.figures dd { font-size: 1.75rem; line-height: 1.25; font-weight: 650; letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.figures dd small { display: block; font-size: 0.8125rem; font-weight: 400; letter-spacing: 0; line-height: 1.4; margin-top: 2px; }
.timeline { margin-top: 16px; padding: 24px 28px 20px; background: var(--paper); border: 1px solid var(--line); border-radius: 16px; }
.timeline > svg { display: block; overflow: visible; font-size: 13px; font-variant-numeric: tabular-nums; }
.timeline text { fill: var(--soft); }
.timeline text.name, .timeline .ca text { fill: var(--ink); font-weight: 550; }
.timeline .grid line { stroke: var(--line); stroke-dasharray: 2 4; }
.timeline .floor { stroke: var(--line); }
.timeline rect.past { fill: var(--wash); rx: 3px; }
.timeline line.now { stroke: var(--ink); stroke-width: 1.5; }
.timeline text.now { fill: var(--ink); font-weight: 650; }
.timeline .ca text { paint-order: stroke; stroke: var(--paper); stroke-width: 5px; stroke-linejoin: round; }
.f-good { fill: var(--bar-good); } .f-warn { fill: var(--bar-warn); } rect.f-bad { fill: var(--bar-bad); }
g > rect.f-bad { fill: url(#hatch); }
.h { stroke: var(--paper); stroke-width: 2; }
.ca path { fill: var(--accent); } .ca .floor { stroke: var(--accent); stroke-opacity: 0.45; }
figcaption { display: flex; flex-wrap: wrap; gap: 4px 24px; margin-top: 16px; color: var(--soft); font-size: 0.8125rem; }
.key::before { content: ""; display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 8px; vertical-align: -1px; background: var(--bar-good); }
.key.f-warn::before { background: var(--bar-warn); }
.key.k-bad::before { background: repeating-linear-gradient(45deg, var(--bar-bad) 0 2px, var(--paper) 2px 4px); outline: 1px solid var(--bar-bad); }
.key.k-ca::before { background: var(--accent); transform: rotate(45deg) scale(0.8); border-radius: 0; }
details { margin-top: 12px; font-size: 0.9375rem; }
summary { cursor: pointer; color: var(--accent); font-weight: 550; padding: 4px 0; }
.table { margin-top: 16px; }
.tools { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; margin-bottom: 12px; font-size: 0.9375rem; }
.tools label { display: flex; align-items: center; gap: 8px; color: var(--soft); }
input, select, button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid #85898c; border-radius: 8px; padding: 6px 12px; min-height: 38px; }
input { width: min(320px, 60vw); }
output { color: var(--soft); margin-left: auto; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; background: var(--paper); border: 1px solid var(--line); border-radius: 12px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: 0.9375rem; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { text-align: left; vertical-align: top; padding: 10px 16px; border-bottom: 1px solid var(--line); font-weight: 400; }
tbody tr:last-child > * { border-bottom: 0; }
thead th { font-size: 0.8125rem; font-weight: 600; color: var(--soft); white-space: nowrap; background: var(--wash); }
thead th:has(button) { padding: 0; }
thead button { border: 0; background: none; color: inherit; font-weight: 600; padding: 10px 16px; width: 100%; text-align: left; cursor: pointer; border-radius: 0; }
thead button:hover { color: var(--ink); }
thead button:focus-visible { outline-offset: -3px; }
[aria-sort] button { color: var(--ink); }
[aria-sort="ascending"] button::after { content: " \\2191"; } [aria-sort="descending"] button::after { content: " \\2193"; }
tbody th { font-weight: 600; background: var(--paper); overflow-wrap: anywhere; min-width: 230px; }
td { min-width: 96px; overflow-wrap: anywhere; }
td[data-s], td code:only-child { white-space: nowrap; }
td small, th small { display: block; font-weight: 400; }
td.long { min-width: 240px; }
.bad-text { color: var(--bad); font-weight: 600; }
.numbers td, .numbers th:not(:first-child) { text-align: right; }
tbody tr:hover > * { background: var(--wash); }
.s { display: inline-flex; align-items: center; gap: 6px; padding: 1px 10px 1px 8px; border-radius: 99px; font-size: 0.8125rem; line-height: 1.55; font-weight: 600; white-space: nowrap; background: var(--wash); color: var(--soft); }
.s::before { content: ""; width: 8px; height: 8px; background: currentColor; border-radius: 50%; }
.s.bad { background: var(--bad-wash); color: var(--bad); } .s.bad::before { border-radius: 1px; }
.s.warn { background: var(--warn-wash); color: var(--warn); } .s.warn::before { clip-path: polygon(50% 0, 100% 100%, 0 100%); border-radius: 0; }
.s.good { background: var(--good-wash); color: var(--good); }
.s.calm::before { background: none; border: 2px solid currentColor; }
.pager { display: flex; gap: 16px; align-items: center; justify-content: center; margin-top: 16px; font-size: 0.9375rem; font-variant-numeric: tabular-nums; }
.pager button { cursor: pointer; } .pager button:hover { background: var(--wash); }
.pager button[aria-disabled="true"] { color: var(--soft); cursor: default; border-color: var(--line); background: none; }
.empty { padding: 20px 24px; border: 1px dashed var(--line); border-radius: 12px; color: var(--soft); margin-top: 16px; }
.notice { margin-top: 12px; padding: 10px 16px; border-radius: 8px; background: var(--wash); color: var(--soft); font-size: 0.9375rem; overflow-wrap: anywhere; }
.notice b { color: var(--ink); font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 500px), 1fr)); gap: 16px; margin-top: 16px; }
.card { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 20px 24px; }
.card h3 { display: flex; justify-content: space-between; gap: 12px; align-items: center; margin: 0 0 12px; font-size: 1.0625rem; overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: minmax(90px, max-content) 1fr; gap: 6px 20px; font-size: 0.9375rem; }
.facts dt { color: var(--soft); } .facts dd { overflow-wrap: anywhere; }
.meter { display: block; width: 100%; height: 12px; margin: 16px 0 8px; border-radius: 6px; overflow: hidden; background: var(--wash); }
footer { margin-top: 72px; padding-top: 16px; border-top: 1px solid var(--line); color: var(--soft); font-size: 0.875rem; }
@media (max-width: 1100px) { .figures { grid-template-columns: repeat(3, 1fr); } }
@media (max-width: 700px) {
  body { padding: 20px 16px 64px; }
  h1 { font-size: 1.75rem; }
  section { margin-top: 44px; }
  .verdict { padding: 20px; }
  .verdict h2 { font-size: 1.375rem; }
  .attention li { grid-template-columns: 1fr; gap: 6px; }
  .figures { grid-template-columns: 1fr 1fr; }
  .figures div { padding: 14px 16px; }
  .figures dd { font-size: 1.375rem; }
  .timeline { padding: 16px; }
  .timeline .minor { display: none; }
  .tools label:first-child { flex: 1 1 100%; }
  .tools input { width: 100%; flex: 1; }
  th, td { padding: 10px 12px; }
  thead button { padding: 10px 12px; }
  tbody th { min-width: 140px; max-width: 44vw; position: sticky; left: 0; box-shadow: 1px 0 0 var(--line); }
}
@media (forced-colors: active) { .s, .card, .verdict { border: 1px solid; } .s::before, .key::before { forced-color-adjust: none; } }
@media print {
  :root { color-scheme: light; --ground: #fff; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --wash: #f2f2f2; --accent: #0a5f66; --bad: #9c1d16; --warn: #6f4200; --good: #1c5a3b; --bad-wash: #fff; --warn-wash: #fff; --good-wash: #fff; --bar-good: #5c9c7c; --bar-warn: #d79a3a; --bar-bad: #c8453c; }
  @page { margin: 16mm 14mm; }
  html { font-size: 11px; }
  body { padding: 0; max-width: none; }
  nav, .tools, .pager, .skip { display: none !important; }
  section { margin-top: 28px; }
  .verdict, .card, .figures, tr, .timeline { break-inside: avoid; }
  h2, h3, .lead { break-after: avoid; }
  .scroll { overflow: visible; }
  th, td { padding: 4px 6px; min-width: 0; }
  td small { white-space: normal; }
  thead { display: table-header-group; }
  .s, .s::before, .key::before, .timeline rect { print-color-adjust: exact; }
}
`;
