/**
 * The script of the page, which the page names by its hash. It reads what is on the page and nothing else: filter, sorting, pages of
 * tables, and how old the page is. It writes text only as text (textContent).
 */
export const script = `'use strict';
(() => {
  const pageSize = 50;
  const tables = [];
  for (const box of document.querySelectorAll('[data-table]')) {
    const body = box.querySelector('tbody');
    const rows = [...body.rows];
    const [tools, pager] = [box.querySelector('.tools'), box.querySelector('.pager')];
    const [search, choice, said] = ['input', 'select', 'output'].map((tag) => tools?.querySelector(tag));
    const [back, next] = pager.querySelectorAll('button');
    const texts = new Map();
    const textOf = (row) => {
      if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
      return texts.get(row);
    };
    let [order, found, page] = [rows, rows, 0];
    const show = (all) => {
      const pages = Math.max(1, Math.ceil(found.length / pageSize));
      page = Math.min(Math.max(page, 0), pages - 1);
      const visible = new Set(all ? found : found.slice(page * pageSize, (page + 1) * pageSize));
      for (const row of rows) row.hidden = !visible.has(row);
      pager.hidden = pages === 1;
      pager.querySelector('span').textContent = 'Page ' + (page + 1) + ' of ' + pages;
      back.setAttribute('aria-disabled', String(page === 0));
      next.setAttribute('aria-disabled', String(page === pages - 1));
      if (said) said.textContent = found.length === rows.length ? rows.length + ' rows' : found.length + ' of ' + rows.length + ' rows';
    };
    const filter = () => {
      const words = (search?.value ?? '').toLowerCase().split(/\\s+/).filter(Boolean);
      const state = choice?.value ?? '';
      found = order.filter((row) => (state === '' || row.dataset.k === state) && words.every((word) => textOf(row).includes(word)));
      page = 0;
      show();
    };
    const turn = (by) => {
      page += by;
      show();
      box.scrollIntoView({ block: 'nearest' });
    };
    back.addEventListener('click', () => turn(-1));
    next.addEventListener('click', () => turn(1));
    search?.addEventListener('input', filter);
    choice?.addEventListener('change', filter);
    if (tools) {
      tools.hidden = false;
      for (const head of box.querySelectorAll('thead th')) {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = head.textContent;
        head.replaceChildren(button);
        button.addEventListener('click', () => {
          const up = head.getAttribute('aria-sort') !== 'ascending';
          for (const other of box.querySelectorAll('[aria-sort]')) other.removeAttribute('aria-sort');
          head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
          const keyed = rows.map((row) => [row.cells[head.cellIndex], row]).map(([cell, row]) => [cell?.dataset.s ? Number(cell.dataset.s) : undefined, cell?.textContent ?? '', row]);
          // Rows without a value are last in both directions.
          const compare = ([a, textA], [b, textB]) => {
            if (textA === '' || textB === '') return Number(textA === '') - Number(textB === '');
            const by = a !== undefined && b !== undefined ? a - b : textA.localeCompare(textB, 'en', { numeric: true });
            return up ? by : -by;
          };
          order = keyed.sort(compare).map(([, , row]) => row);
          body.replaceChildren(...order);
          filter();
        });
      }
    }
    show();
    tables.push({ id: choice?.id, choice, filter, show });
  }
  for (const link of document.querySelectorAll('a[data-show]')) {
    link.addEventListener('click', () => {
      const table = tables.find(({ id }) => id === 'nodes-state');
      if (!table) return;
      table.choice.value = link.dataset.show;
      table.filter();
    });
  }
  const at = Date.parse(document.querySelector('time').dateTime);
  const hours = Math.floor((Date.now() - at) / 3600000);
  if (hours >= 24) {
    const age = document.getElementById('age');
    age.textContent = 'This page is ' + Math.floor(hours / 24) + (hours < 48 ? ' day' : ' days') + ' old.';
    age.hidden = false;
  }
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    for (const details of opened) details.open = true;
    for (const { show } of tables) show(true);
  });
  addEventListener('afterprint', () => {
    for (const details of opened) details.open = false;
    for (const { show } of tables) show();
  });
})();
`;
