/**
 * The report as one HTML file: it loads nothing, so it can be sent, stored and opened anywhere. Its Content-Security-Policy names the
 * style sheet and the script by their hashes, so markup that came in with a name from the cluster could not run either.
 */
import { hash } from 'node:crypto';
import type { Attention } from '../model/attention-codes.ts';
import type { Report } from '../model/shape.ts';
import { badge } from './labels.ts';
import { Markup, markup } from './markup.ts';
import { script } from './script.ts';
import { machines, nodes, otherCertificates, requests, section, sources } from './sections.ts';
import { style } from './style.ts';
import { timeline } from './timeline.ts';
import { relativeText, spanText, utcText } from './times.ts';
import { audit, cas } from './trust-section.ts';

const icon = markup`<path d="M12 2.5 4 5.5v6c0 5 3.4 8.6 8 10 4.6-1.4 8-5 8-10v-6Z" /><path d="m8.5 12 2.5 2.5 4.5-5" />`;
/** Percent-encoded, for the icon of the tab. */
const iconUrl = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#0a7d86" stroke-width="2">${icon.text}</svg>`,
)}`;

const policy = [
  "default-src 'none'",
  `style-src ${sourceHash(style)}`,
  `script-src ${sourceHash(script)}`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

function sourceHash(text: string): string {
  return `'sha256-${hash('sha256', text, 'base64')}'`;
}

export function reportPage(report: Report): string {
  const { cluster, at, attention } = report;
  const acts = attention.filter(({ level }) => level === 'act').length;
  return markup`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${new Markup(policy)}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <meta name="generator" content="countersign ${report.version}" />
        <title>${acts === 0 ? '' : `(${acts}) `}${cluster}: Countersign report</title>
        <link rel="icon" href="${new Markup(iconUrl)}" />
        ${new Markup(`<style>${style}</style>`)}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the report</a>
        <header>
          <div>
            <p class="brand"><svg viewBox="0 0 24 24" aria-hidden="true">${icon}</svg>Countersign report</p>
            <h1>${cluster}</h1>
          </div>
          <p class="as-of">As of <time datetime="${at}">${utcText(at)} UTC</time><br /><span id="age" hidden></span></p>
        </header>
        <nav aria-label="Sections">
          <ul>
            ${contents.map(([id, title]) => markup`<li><a href="#${id}">${title}</a></li>`)}
          </ul>
        </nav>
        <main id="main">
          ${verdict(attention)} ${figures(report)}
          ${section({ id: 'timeline', title: 'Time line', lead: 'When the latest certificate of each holder ends. A certificate that was renewed is not shown.', parts: ['certificates', 'cas'] }, report, timeline(report))}
          ${section({ id: 'nodes', title: 'Nodes', lead: 'Each node with its latest certificates and its machine. Those that need something come first.', parts: ['records', 'certificates', 'nodes'] }, report, nodes(report))}
          ${section({ id: 'machines', title: 'Machines and first use', lead: 'The first machine with a node name keeps it. These requests came from another machine, or with another name or key.', parts: ['records'] }, report, machines(report))}
          ${section({ id: 'requests', title: 'Requests', lead: 'Requests that wait, failed or were refused, with the reason. Kubernetes deletes answered requests after an hour.', parts: ['requests', 'records'] }, report, requests(report))}
          ${section({ id: 'cas', title: 'CAs and trust', lead: 'Which CA signs, until when, and which parts of the cluster accept its certificates.', parts: ['cas', 'trust'] }, report, cas(report))}
          ${section({ id: 'audit', title: 'If audit mode ended', lead: 'The latest request of each node and signer in the last 25 hours, as it would be decided without mode: audit.', parts: ['records', 'nodes'] }, report, audit(report))}
          ${section({ id: 'others', title: 'Other certificates', lead: 'The latest certificates of users, services and other clients.', parts: ['certificates'] }, report, otherCertificates(report))}
          ${section({ id: 'sources', title: 'What was read', lead: 'The report changes nothing. It has no keys, tokens or evidence.', parts: [] }, report, sources(report))}
        </main>
        <footer>Made by <code>countersign report -o html</code>. All times are UTC.</footer>
        ${new Markup(`<script>${script}</script>`)}
      </body>
    </html> `.text;
}

const contents = [
  ['timeline', 'Time line'],
  ['nodes', 'Nodes'],
  ['machines', 'Machines'],
  ['requests', 'Requests'],
  ['cas', 'CAs and trust'],
  ['audit', 'If audit mode ended'],
  ['others', 'Other certificates'],
  ['sources', 'What was read'],
] as const;

function verdict(attention: readonly Attention[]): Markup {
  const acts = attention.filter(({ level }) => level === 'act').length;
  const watches = attention.length - acts;
  const title =
    acts > 0
      ? `${acts} ${acts === 1 ? 'thing needs' : 'things need'} action today`
      : watches > 0
        ? `Nothing needs action today, ${watches} to watch`
        : 'Nothing needs action today';
  const items = attention.map(({ level, text, advice, section: id, standing, examples = [] }) => {
    const names = examples.length === 0 ? markup`` : markup`<p class="names">${examples.join(', ')}</p>`;
    const filter = standing === undefined ? markup`` : markup` data-show="${standing}"`;
    const mark = badge(level === 'act' ? ['bad', 'Act'] : ['warn', 'Watch']);
    return markup`<li>
      ${mark}
      <div>
        <a href="#${id}" ${filter}>${text}</a>
        ${names}
        <p>${advice}</p>
      </div>
    </li> `;
  });
  const list =
    items.length === 0
      ? markup``
      : markup`<ol class="attention">
          ${items}
        </ol>`;
  return markup`<section class="verdict ${acts > 0 ? 'act' : watches > 0 ? 'watch' : 'calm'}" aria-labelledby="verdict">
    <h2 id="verdict">${title}</h2>
    ${list}
  </section>`;
}

function figures(report: Report): Markup {
  const {
    at,
    fleet,
    otherCertificates: others,
    requests: waiting,
    cas: rows,
    conflicts,
    nodes: audited = 0,
    failing = 0,
  } = report;
  const isRead = (part: string): boolean => report.parts.some(({ name, state }) => name === part && state === 'read');
  const present = fleet.filter(({ standing }) => standing !== 'gone');
  const held = [...present.flatMap(({ certificates }) => certificates), ...others];
  const usable = held.filter(({ state }) => state === 'valid' || state === 'due' || state === 'late');
  const next = usable.reduce<string | undefined>(
    (first, { notAfter }) => (first === undefined || notAfter < first ? notAfter : first),
    undefined,
  );
  const pending = waiting.filter(({ state }) => state === 'pending' || state === 'approved').length;
  const caEnd = rows.flatMap(({ notAfter }) => notAfter ?? []).toSorted()[0];
  const well = present.filter(({ standing }) => standing === 'valid' || standing === 'due').length;
  const shown: readonly (readonly [string, string | number, string])[] = [
    ['Nodes', present.length, isRead('certificates') ? `${well} with certificates in time` : 'certificates not read'],
    [
      'Certificates in use',
      isRead('certificates') ? usable.length : '–',
      next === undefined ? '' : `the next ends ${relativeText(next, at)}`,
    ],
    [
      'Requests that wait',
      isRead('requests') ? pending : '–',
      isRead('requests') ? `${waiting.length - pending} refused` : 'the cluster was not read',
    ],
    [
      'First-use conflicts',
      isRead('records') ? conflicts.length : '–',
      isRead('records') ? 'in the last 25 hours' : 'not read',
    ],
    [
      'First CA to end',
      caEnd === undefined ? '–' : spanText(Date.parse(caEnd) - Date.parse(at)),
      caEnd === undefined ? 'not read' : utcText(caEnd),
    ],
    [
      'Refused if enforced',
      audited === 0 ? '–' : failing,
      audited === 0 ? 'no audit mode in 25 hours' : `of ${audited} nodes`,
    ],
  ];
  return markup`<dl class="figures">
    ${shown.map(
      ([term, value, more]) =>
        markup`<div>
          <dt>${term}</dt>
          <dd>${value}<small>${more}</small></dd>
        </div>`,
    )}
  </dl>`;
}
