/** The page of `countersign report -o html` in a real browser: silent, self-contained, readable, and usable by keyboard alone. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { reportPage } from '../../../cli/report/page/page.ts';
import { reportOf } from '../../../cli/report/model/report.ts';
import type { Facts } from '../../../cli/report/model/facts.ts';
import { byTier } from '../../harness/determinism/tier.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { startChromium } from '../../harness/report/chromium.ts';
import type { Browser, BrowserPage, Look } from '../../harness/report/chromium.ts';
import { busyFacts, day, held, nodeName, request, sampleFacts } from '../../harness/report/sample-facts.ts';
import { requireTools, toolPath } from '../../tools/tools.ts';

const { skip } = await requireTools('chromium', 'axe-core');
const patience = 240_000;

describe.skipIf(skip)('the page of a report', { timeout: patience }, () => {
  const { path: folder, remove } = temporaryFolder('report');
  const at = Date.now();
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  }, patience);
  afterAll(async () => {
    await browser.close();
    remove();
  }, patience);

  async function open(facts: Facts, look: Look): Promise<BrowserPage> {
    const file = join(folder, 'report.html');
    writeFileSync(file, reportPage(reportOf(facts)));
    const page = await browser.open(file, look);
    onTestFinished(async () => {
      // No test leaves an error in the console or asks for another file.
      expect([page.complaints, page.requests]).toEqual([[], []]);
      await page.close();
    });
    return page;
  }

  /** Ids of the broken rules, each with the first element that breaks it. */
  async function accessibilityFaults(page: BrowserPage): Promise<readonly string[]> {
    await page.evaluate(readFileSync(join(await toolPath('axe-core'), 'axe.min.js'), 'utf8') + '; 0');
    return page.evaluate(
      `axe.run({ resultTypes: ['violations'] }).then(({ violations, passes }) =>
        passes.some(({ id }) => id === 'color-contrast')
          ? violations.map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200) + ' ' + nodes[0].failureSummary)
          : ['contrast was not checked'])`,
    );
  }

  /** The first cells of the rows that can be seen. */
  const rows = (page: BrowserPage, section: string): Promise<readonly string[]> =>
    page.evaluate(
      `[...document.querySelectorAll('#${section} tbody tr')].filter((row) => row.offsetParent !== null).map((row) => row.cells[0].textContent)`,
    );

  const looks = byTier({
    default: [
      { width: 1600, theme: 'light', count: 64 },
      { width: 400, theme: 'dark', count: 64 },
      { width: 900, theme: 'light', count: 0 },
    ],
    // axe-core reads all rows of 5 000 nodes for half a minute.
    deep: (['light', 'dark'] as const).flatMap((theme) => [
      ...[400, 900, 1600].flatMap((width) => [0, 1, 64].map((count) => ({ width, theme, count }))),
      { width: 900, theme, count: 5_000 },
    ]),
  } as const);

  test.each(looks)('%o: every rule of axe-core holds, and the page is not wider than the window', async (look) => {
    const facts = await (look.count > 9 ? busyFacts : sampleFacts)(look.count, at);
    const page = await open(facts, look);
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(look.width);
    const ground = await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    expect(ground).toBe(look.theme === 'dark' ? 'rgb(19, 22, 24)' : 'rgb(246, 246, 243)');
  });

  test('by keyboard: skip link, filter, sorting, next page', async () => {
    const page = await open(await busyFacts(120, at), { width: 1280 });
    const focused = () =>
      page.evaluate<string>('document.activeElement.id || document.activeElement.textContent.trim()');
    const tabTo = async (wanted: string): Promise<void> => {
      for (let presses = 0; presses < 60; presses += 1) {
        await page.press('Tab');
        if ((await focused()) === wanted) return;
      }
      throw new Error(`Tab does not lead to ${wanted}`);
    };
    await page.press('Tab');
    expect(await focused()).toBe('Skip to the report');
    await page.press('Enter');
    expect(await page.evaluate('location.hash')).toBe('#main');

    await tabTo('nodes-filter');
    await page.type('0-0-1 internal');
    const found = await rows(page, 'nodes');
    expect(found.length).toBeGreaterThan(3);
    expect(found.filter((name) => !name.includes('0-0-1'))).toEqual([]);
    expect(await page.evaluate(`document.querySelector('#nodes output').textContent`)).toBe(
      `${found.length} of 120 rows`,
    );
    await page.evaluate(`document.activeElement.select()`);
    await page.type('no such node');
    expect(await rows(page, 'nodes')).toEqual([]);
    await page.evaluate(`document.activeElement.select()`);
    await page.type('ip-');
    expect((await rows(page, 'nodes')).length).toBe(50);

    await tabTo('nodes-state');
    // As in every list of a browser: the first letters choose.
    await page.press('R');
    await page.press('e');
    expect(await page.evaluate(`document.querySelector('#nodes-state').value`)).toBe('late');
    expect(await rows(page, 'nodes')).toEqual([nodeName(7)]);
    await page.evaluate(
      `document.querySelector('#nodes-state').value = ''; document.querySelector('#nodes-state').dispatchEvent(new Event('change'))`,
    );

    await tabTo('Node');
    const sorting = () => page.evaluate(`document.activeElement.parentElement.getAttribute('aria-sort')`);
    await page.press('Enter');
    expect(await sorting()).toBe('ascending');
    const ascending = await rows(page, 'nodes');
    const numeric = new Intl.Collator('en', { numeric: true });
    expect(ascending).toEqual(ascending.toSorted((a, b) => numeric.compare(a, b)));
    await page.press(' ');
    expect(await sorting()).toBe('descending');

    await tabTo('Next page');
    await page.press('Enter');
    const where = () => page.evaluate(`document.querySelector('#nodes .pager span').textContent`);
    expect(await where()).toBe('Page 2 of 3');
    await page.press('Enter');
    await page.press('Enter');
    expect(await where(), 'it stays on the last page').toBe('Page 3 of 3');
    expect((await rows(page, 'nodes')).length).toBe(20);
  });

  test('times are sorted by time, and rows without one are last', async () => {
    const page = await open(await busyFacts(30, at), { width: 1280 });
    await page.evaluate(`document.querySelectorAll('#nodes thead button')[2].click()`);
    const ends = await page.evaluate<readonly string[]>(
      `[...document.querySelectorAll('#nodes tbody tr')].map((row) => row.cells[2].querySelector('small')?.textContent ?? '')`,
    );
    expect(ends.length).toBe(30);
    expect(ends.filter(Boolean)).toEqual(ends.filter(Boolean).toSorted());
  });

  test('a finding leads to its rows', async () => {
    const page = await open(await busyFacts(64, at), { width: 1280 });
    await page.evaluate(`document.querySelector('a[data-show=ended]').click()`);
    expect(await page.evaluate('location.hash')).toBe('#nodes');
    expect(await rows(page, 'nodes')).toEqual([nodeName(1), nodeName(4)]);
  });

  test.each([
    [0, 0, ''],
    [1, 1, ''],
    [501, 50, 'Page 1 of 11'],
    [5_000, 50, 'Page 1 of 100'],
  ])('%i nodes: %i rows at once %s', async (count, shown, where) => {
    const page = await open(await sampleFacts(count, at), { width: 900 });
    expect((await rows(page, 'nodes')).length).toBe(shown);
    const pager = `document.querySelector('#nodes .pager')`;
    expect(await page.evaluate(`${pager} && !${pager}.hidden ? ${pager}.querySelector('span').textContent : ''`)).toBe(
      where,
    );
  });

  test('without its script it has all rows, and no tools that do nothing', async () => {
    const page = await open(await busyFacts(120, at), { width: 900, scripts: false });
    const { root } = await page.send('DOM.getDocument', { depth: -1 });
    const { nodeId } = root as { nodeId: number };
    const count = async (selector: string) =>
      ((await page.send('DOM.querySelectorAll', { nodeId, selector })) as { nodeIds: number[] }).nodeIds.length;
    expect(await count('#nodes tbody tr')).toBe(120);
    expect(await count('#nodes tbody tr[hidden], thead button')).toBe(0);
    expect(await count('.tools:not([hidden]), .pager:not([hidden])')).toBe(0);
  });

  test('print: every row that the filter leaves, and then the pages again', async () => {
    const page = await open(await busyFacts(120, at), { width: 900 });
    await page.evaluate(
      `addEventListener('beforeprint', () => { window.printed = [...document.querySelectorAll('#nodes tbody tr')].filter((row) => !row.hidden).length; window.opened = document.querySelectorAll('details:not([open])').length; })`,
    );
    const { data } = await page.send('Page.printToPDF');
    expect(Buffer.from(String(data), 'base64').subarray(0, 5).toString()).toBe('%PDF-');
    expect(await page.evaluate('[window.printed, window.opened]')).toEqual([120, 0]);
    expect((await rows(page, 'nodes')).length).toBe(50);
  });

  test('a page of another day says how old it is', async () => {
    const age = async (days: number) => {
      const page = await open(await sampleFacts(1, at - days * day), { width: 900 });
      return page.evaluate(`document.getElementById('age').innerText`);
    };
    expect([await age(0.5), await age(1.5), await age(3.1)]).toEqual([
      '',
      'This page is 1 day old.',
      'This page is 3 days old.',
    ]);
  });

  test('hostile names are text: no element, no script, no dialog, no request', async () => {
    const names = [
      '<script>alert(1)</script>',
      '"><img src="https://example.com/x" onerror="alert(1)">',
      '</style><style>*{display:none}</style>',
      '</title><svg onload=alert(1)>',
      '<a href="javascript:alert(1)">x</a>',
      '\u202Egnp.exe',
    ];
    const facts = await sampleFacts(3, at);
    const page = await open(
      {
        ...facts,
        cluster: names.join(' '),
        nodes: { state: 'read', value: names },
        certificates: {
          state: 'read',
          value: names.map((name) => held(name, { at, left: 3_600_000, signerName: name })),
        },
        requests: {
          state: 'read',
          value: names.map((name) =>
            request(name, at, { requester: name, reason: name, message: name, signerName: name }),
          ),
        },
      },
      { width: 1280 },
    );
    expect(await page.evaluate(`document.querySelectorAll('img, iframe, object, a:not([href^="#"])').length`)).toBe(0);
    expect(await page.evaluate(`document.querySelectorAll('script, style').length`)).toBe(2);
    const shown = await rows(page, 'requests');
    for (const name of names.slice(0, 5))
      expect(
        shown.some((text) => text.includes(name)),
        name,
      ).toBe(true);
    expect(shown.some((text) => text.includes('\\u{202e}gnp.exe'))).toBe(true);
  });

  test('an injected script would not run: the policy of the page stops it', async () => {
    const file = join(folder, 'injected.html');
    const text = reportPage(reportOf(await sampleFacts(1, at)));
    const injected =
      '<script>window.ran = 1</script><img src="data:," onerror="window.ran = 1"><p style="color:red" id="p">x</p>';
    writeFileSync(file, text.replace('<main id="main">', `<main id="main">${injected}`));
    const opened = await browser.open(file, { width: 900 });
    expect(await opened.evaluate('window.ran')).toBeUndefined();
    expect(opened.complaints.filter((each) => each.includes('Content Security Policy')).length).toBeGreaterThan(0);
    await opened.close();
  });
});
