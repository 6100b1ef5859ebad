/** Tables of the page. Without its script they have all rows; the script adds a filter, sorting and pages. */
import type { Markup } from './markup.ts';
import { markup } from './markup.ts';

export interface Cell {
  readonly content: Markup | string | number;
  /** What the script sorts by, if it is not the text. */
  readonly sort?: number;
  /** A sentence: its column must not be narrow. */
  readonly long?: true;
}

export interface Row {
  readonly cells: readonly (Cell | Markup | string | number)[];
  /** For the filter by state: one of `states`. */
  readonly state?: string;
}

export interface TableOptions {
  readonly id: string;
  /** Read by screen readers. */
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
  /** Keys of `Row.state` and how they are called. */
  readonly states?: readonly (readonly [key: string, label: string])[];
  /** Instead of a table without rows. */
  readonly empty: string;
}

/** Shorter tables need no filter. */
const fewRows = 8;

export function table({ id, caption, columns, rows, states = [], empty }: TableOptions): Markup {
  if (rows.length === 0) return markup`<p class="empty">${empty}</p>`;
  const head = columns.map((title) => markup`<th scope="col">${title}</th>`);
  const body = rows.map(({ cells, state }) => {
    const [first, ...others] = cells.map(cellMarkup);
    const key = state === undefined ? markup`` : markup` data-k="${state}"`;
    return markup`<tr${key}>${first?.('th') ?? markup``}${others.map((cell) => cell('td'))}</tr>\n`;
  });
  return markup`<div class="table" data-table>
    ${rows.length > fewRows ? tools(id, caption, rows, states) : markup``}
    <div class="scroll" role="group" aria-label="${caption}" tabindex="0">
      <table>
        <caption>${caption}</caption>
        <thead><tr>${head}</tr></thead>
        <tbody>
${body}</tbody>
      </table>
    </div>
    <div class="pager" hidden>
      <button type="button">Previous page</button>
      <span aria-live="polite"></span>
      <button type="button">Next page</button>
    </div>
  </div>`;
}

function cellMarkup(cell: Row['cells'][number]): (tag: 'th' | 'td') => Markup {
  const { content, sort, long }: Cell = typeof cell === 'object' && 'content' in cell ? cell : { content: cell };
  const key = sort !== undefined ? markup` data-s="${sort}"` : long === true ? markup` class="long"` : markup``;
  return (tag) => (tag === 'th' ? markup`<th scope="row"${key}>${content}</th>` : markup`<td${key}>${content}</td>`);
}

function tools(
  id: string,
  caption: string,
  rows: readonly Row[],
  states: readonly (readonly [key: string, label: string])[],
): Markup {
  const counts = new Map<string, number>();
  for (const { state = '' } of rows) counts.set(state, (counts.get(state) ?? 0) + 1);
  const present = states.filter(([key]) => counts.has(key));
  const options = present.map(
    ([key, label]) => markup`<option value="${key}">${label} (${counts.get(key) ?? 0})</option>`,
  );
  const choice =
    present.length < 2
      ? markup``
      : markup`<label>State <select id="${id}-state"><option value="">all</option>${options}</select></label>`;
  return markup`<div class="tools" hidden>
    <label>Filter <input type="search" id="${id}-filter" autocomplete="off" spellcheck="false" aria-label="Filter: ${caption}"></label>
    ${choice}
    <output aria-live="polite"></output>
  </div>`;
}
