/** The page: everything in one file, every value escaped, nothing lost without its script. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { markup } from '../../../../cli/report/page/markup.ts';
import { reportPage } from '../../../../cli/report/page/page.ts';
import { spanText } from '../../../../cli/report/page/times.ts';
import { reportOf } from '../../../../cli/report/model/report.ts';
import { busyFacts, held, request, sampleFacts, verdict } from '../../../harness/report/sample-facts.ts';
import { now as at } from '../run.ts';

const read = <T>(value: T) => ({ state: 'read', value }) as const;
const hour = 3_600_000;

/** The attributes of the page that could name another file. */
const references = (page: string): readonly string[] =>
  [...page.matchAll(/\s(?:src|href|srcset|action|data|poster|xlink:href)="([^"]*)"/g)].map(([, value = '']) => value);

test.each([0, 1, 5_000])(
  '%i nodes: one row each, without the script too, in a file of a bounded size',
  async (count) => {
    const page = reportPage(reportOf(await sampleFacts(count, at)));
    const nodes = page.slice(page.indexOf('<section id="nodes"'), page.indexOf('<section id="machines"'));
    expect([...nodes.matchAll(/<tr data-k=/g)].length).toBe(count);
    expect(nodes).not.toMatch(/<tr[^>]* hidden/);
    if (count === 0) expect(nodes).toContain('No node is known');
    expect(page.length).toBeLessThan(40_000 + count * 500);
  },
);

test('it loads nothing: only anchors of the page, and an icon in the page', async () => {
  const page = reportPage(reportOf(await busyFacts(30, at)));
  for (const value of references(page)) expect(value).toMatch(/^(#[a-z]+|data:image\/svg\+xml,.*)$/);
  expect(page).not.toMatch(/@import|url\((?!#hatch)/);
  expect(page).not.toMatch(/\sstyle=|\son[a-z]+=/);
});

test('its policy permits exactly its own style sheet and script', async () => {
  const page = reportPage(reportOf(await sampleFacts(1, at)));
  const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page) ?? [];
  const digest = (tag: string) => {
    const found = [...page.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, 'g'))];
    expect(found.length).toBe(1);
    return `'sha256-${createHash('sha256')
      .update(found[0]?.[1] ?? '')
      .digest('base64')}'`;
  };
  expect(policy.split('; ')).toEqual([
    "default-src 'none'",
    `style-src ${digest('style')}`,
    `script-src ${digest('script')}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ]);
});

const hostile = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '</style><style>*{display:none}</style>',
  '</title><meta http-equiv=refresh content=0>',
  '<!--',
  '${7*7}{{7*7}}',
  '\u202Egnp.exe\u2066',
  'a\u0000b\u001b[31mc\u2028d',
  '&lt;b&gt;',
];

test.each(hostile)('the name %j is shown and does nothing', async (name) => {
  const facts = await busyFacts(9, at);
  const { records, certificates } = facts;
  if (records.state !== 'read' || certificates.state !== 'read') throw new Error('the sample has all parts');
  const [first] = records.value.identities;
  if (first === undefined) throw new Error('the sample has machines');
  const lock = { id: 'l', nodeName: name, at, by: name, reason: name };
  const asked = { problem: name };
  const evil = {
    ...facts,
    cluster: name,
    records: read({
      ...records.value,
      identities: [...records.value.identities, { ...first, nodeName: name, identity: name, unknownSince: at }],
      locks: [lock, { ...lock, identity: name }],
      verdicts: [
        verdict(name, at, 'TofuReuse', name, { signerName: name }),
        verdict(name, at, 'RequestMalformed', name, {
          signerName: name,
          annotations: { 'countersign.dev/evidence': name },
        }),
        verdict(name, at, 'AttestationMissing', name, { mode: 'audit', signerName: name }),
      ],
    }),
    certificates: read([
      held(name, { at, left: -hour, signerName: name, serial: name }),
      held(name, { at, left: hour, node: false, signerName: name, caKeyId: name }),
    ]),
    cas: read({
      cluster: name,
      cas: [{ name, fault: name }],
      profiles: [{ signerName: name, kind: 'custom' as const, ca: name, maxTtlSeconds: 1 }],
    }),
    requests: read([request(name, at, { requester: name, signerName: name, reason: name, message: name, asked })]),
    nodes: { state: 'failed' as const, why: name },
    trust: read([{ name, place: name, unread: name, concern: 'none' as const, change: '' }]),
  };
  const [before, page] = [reportPage(reportOf(facts)), reportPage(reportOf(evil))];
  // The same kinds of tags and attributes as on a page of ordinary names.
  const kinds = (text: string) =>
    new Set(
      [...text.replace(/<script>[^]*<\/script>/, '').matchAll(/<(\/?[a-z!-]+)((?:\s[a-z-]+(?:="[^"]*")?)*)/gi)].map(
        ([, tag]) => tag,
      ),
    );
  expect([...kinds(page)].filter((tag) => !kinds(before).has(tag))).toEqual([]);
  expect([...page.matchAll(/<script>/g)].length).toBe(1);
  expect(page).not.toMatch(/\son(error|mouseover)="/);
  expect(page).not.toContain(`onmouseover='`);
  // oxlint-disable-next-line no-control-regex
  expect(page).not.toMatch(/[\u0000\u001b\u2028\u202e\u2066]/);
  expect(references(page).filter((value) => !/^(#[a-z]+|data:image\/svg\+xml,.*)$/.test(value))).toEqual([]);
});

test('a value is escaped in texts and attributes, and cut', () => {
  expect(markup`<a title="${`<'"&>`}">${'<b>'}${'x'.repeat(700)}</a>`.text).toBe(
    `<a title="&lt;&#39;&quot;&amp;&gt;">&lt;b&gt;${'x'.repeat(600)}…</a>`,
  );
  expect(markup`${'a\nb\u202Ec'}${7}${undefined}${[markup`<i>`, markup`${'<'}`]}`.text).toBe(
    'a\\u{a}b\\u{202e}c7<i>&lt;',
  );
});

test('what was not read is said in each section that needs it, and in the figures', async () => {
  const facts = await sampleFacts(3, at);
  const page = reportPage(
    reportOf({
      ...facts,
      certificates: { state: 'failed', why: 'the index expiry cannot be read' },
      requests: { state: 'notAsked', why: '--kubeconfig names the cluster' },
    }),
  );
  const said = [...page.matchAll(/<p class="notice">.*?<\/p>/g)].map(([text]) => text.replaceAll(/<[^>]+>/g, ''));
  expect(said).toEqual([
    'Not read: certificates of the ledger. the index expiry cannot be read',
    'Not read: certificates of the ledger. the index expiry cannot be read',
    'Not read: requests of the cluster. --kubeconfig names the cluster',
    'Not read: certificates of the ledger. the index expiry cannot be read',
  ]);
  expect(page).toContain('certificates not read');
  expect(page).toContain('the cluster was not read');
});

test('no page has a secret or evidence: what the facts have of them is not in the report', async () => {
  const report = reportOf(await busyFacts(9, at));
  const text = JSON.stringify(report) + reportPage(report);
  expect(text).not.toMatch(/requestDigest|keyFingerprint|spkiSha256|PRIVATE KEY|BEGIN CERTIFICATE/);
});

test.each([
  [0, 'less than 1 min'],
  [61_000, '1 min'],
  [3.2 * hour, '3 h 12 min'],
  [-26 * hour, '1 d 2 h'],
  [12.5 * 24 * hour, '12 d'],
  [400 * 24 * hour, '1 y 35 d'],
])('%i milliseconds are %s', (milliseconds, text) => {
  expect(spanText(milliseconds)).toBe(text);
});
