/** The CAs, what trusts them, and what enforcing would refuse. */
import type { Report } from '../model/shape.ts';
import type { CaRow, TrustRow } from '../model/cas.ts';
import { auditLabels, badge, nodeText, signerText, statesOf } from './labels.ts';
import type { Markup } from './markup.ts';
import { markup } from './markup.ts';
import { table } from './table.ts';
import { minuteOf, moment, relativeText, utcText } from './times.ts';

export function cas(report: Report): Markup {
  const { cas: rows, trust } = report;
  const names = rows.filter(({ notAfter }) => notAfter !== undefined).map(({ name }) => name);
  const cards = rows.map((ca) => card(ca, report.at));
  const empty = report.parts.some(({ name, state }) => name === 'cas' && state === 'read');
  return markup`${cards.length > 0 ? markup`<div class="cards">${cards}</div>` : empty ? markup`<p class="empty">No CA is configured.</p>` : markup``}
  ${
    report.parts.some(({ name, state }) => name === 'trust' && state === 'read')
      ? markup`<h3>What the cluster trusts</h3>
          ${table({
            id: 'trust',
            caption: 'What the cluster trusts',
            columns: ['Verifier', 'Where', ...names.map((name) => `CA ${name}`)],
            rows: trust.map((row) => ({ cells: [row.name, row.place, ...names.map((name) => trustCell(row, name))] })),
            empty: 'No part of the cluster that the API shows trusts one of these CAs.',
          })}`
      : markup``
  }`;
}

function trustCell({ cas: trusted, unread }: TrustRow, ca: string): Markup {
  if (unread === 'hidden') return badge(['calm', 'a file: not shown by the API']);
  if (unread !== undefined) return markup`${badge(['calm', 'not read'])} ${unread}`;
  const state = trusted[ca];
  if (state === 'trusted') return badge(['good', 'trusted']);
  return state === 'needed' ? badge(['bad', 'not trusted']) : markup`<span class="s calm">not needed</span>`;
}

const day = 86_400_000;

function card(
  { name, fault, subject, notAfter, fingerprintSha256, keyId, replaces, signerNames, holders }: CaRow,
  at: string,
): Markup {
  const left = notAfter === undefined ? 0 : Date.parse(notAfter) - Date.parse(at);
  const state =
    notAfter === undefined
      ? (['bad', 'Not in force'] as const)
      : left <= 0
        ? (['bad', 'Ended'] as const)
        : left < 90 * day
          ? (['warn', 'Ends soon'] as const)
          : (['good', 'In force'] as const);
  const facts: readonly (readonly [string, Markup | string | number | undefined])[] = [
    ['Why', fault],
    ['Ends', notAfter === undefined ? undefined : `${relativeText(notAfter, at)}, ${utcText(notAfter)}`],
    ['Subject', subject],
    ['Signs for', signerNames.length === 0 ? 'no signer' : signerNames.map(signerText).join(', ')],
    ['Latest certificate of', holders === undefined ? undefined : `${holders} ${holders === 1 ? 'holder' : 'holders'}`],
    ['Replaces', replaces],
    ['Key', keyId === undefined ? undefined : markup`<code>${keyId}</code>`],
    ['SHA-256', fingerprintSha256 === undefined ? undefined : markup`<code>${fingerprintSha256}</code>`],
  ];
  const shown = facts.flatMap(([term, value]) =>
    value === undefined
      ? []
      : [
          markup`<dt>${term}</dt>
            <dd>${value}</dd>`,
        ],
  );
  return markup`<article class="card">
    <h3><span>${name}</span>${badge(state)}</h3>
    <dl class="facts">${shown}</dl>
  </article> `;
}

export function audit({ nodes = 0, failing = 0, passing = 0, evidence = {}, rows, at }: Report): Markup {
  if (rows === undefined) return markup``;
  const versions = Object.entries(evidence);
  const used =
    versions.length === 0
      ? markup``
      : markup`<h3>Versions of evidence</h3>
          <dl class="facts">
            ${versions.map(
              ([version, names]) =>
                markup`<dt><code>${version}</code></dt>
                  <dd>${names.length} ${names.length === 1 ? 'node' : 'nodes'}</dd>`,
            )}
          </dl>`;
  if (rows.length === 0)
    return markup`<p class="empty">No request was decided in audit mode in the last 25 hours.</p>
      ${used}`;
  const share = nodes === 0 ? 0 : (passing / nodes) * 100;
  return markup`<svg
      class="meter"
      role="img"
      aria-label="${passing} of ${nodes} nodes would be admitted"
      width="100%"
      height="12"
    >
      <rect class="f-good" width="${share.toFixed(1)}%" height="12" />
      <rect class="f-bad" x="${share.toFixed(1)}%" width="${(100 - share).toFixed(1)}%" height="12" />
    </svg>
    <p><b>${failing}</b> of ${nodes} nodes would be refused, ${passing} would be admitted.</p>
    ${table({
      id: 'audit',
      caption: 'What enforcing would refuse',
      columns: ['Node', 'If enforced', 'Why', 'Signer', 'Seen'],
      rows: rows.map(({ node, signerName = '', wouldBe, message = '', seen }) => ({
        state: wouldBe,
        cells: [
          nodeText(node),
          badge(auditLabels[wouldBe]),
          { content: message, long: true },
          signerName === '' ? '' : signerText(signerName),
          seen === undefined ? '' : { content: moment(seen, at), sort: minuteOf(seen) },
        ],
      })),
      states: statesOf(auditLabels),
      empty: '',
    })}${used}`;
}
