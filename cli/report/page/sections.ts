/** The sections of the page, each from one part of the report. */
import type { PartName } from '../model/facts.ts';
import type { NodeRow, ShownCertificate } from '../model/nodes.ts';
import type { Report } from '../model/shape.ts';
import { badge, certificateLabels, nodeText, requestLabels, signerText, standingLabels, statesOf } from './labels.ts';
import type { Markup } from './markup.ts';
import { markup } from './markup.ts';
import { table } from './table.ts';
import type { Cell, Row } from './table.ts';
import { minuteOf, moment, relativeText, utcText } from './times.ts';

export interface SectionText {
  readonly id: string;
  readonly title: string;
  readonly lead: string;
  /** Parts that the section needs: what was not read is said in it. */
  readonly parts: readonly PartName[];
}

export function section({ id, title, lead, parts }: SectionText, report: Report, content: Markup): Markup {
  const unread = report.parts.filter(({ name, state }) => parts.includes(name) && state !== 'read');
  const notices = unread.map((part) => markup`<p class="notice"><b>Not read: ${part.title}.</b> ${part.why ?? ''}</p>`);
  return markup`<section id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    <p class="lead">${lead}</p>
    ${notices}${content}
  </section> `;
}

/** More signers than these have one column together. */
const mostColumns = 3;

export function nodes(report: Report): Markup {
  const { fleet, at } = report;
  const counts = new Map<string, number>();
  for (const { certificates } of fleet)
    for (const { signerName } of certificates) counts.set(signerName, (counts.get(signerName) ?? 0) + 1);
  const signers = [...counts].toSorted(([, a], [, b]) => b - a).map(([name]) => name);
  const [own, others] = [signers.slice(0, mostColumns), signers.slice(mostColumns)];
  const columns = [
    'Node',
    'State',
    ...own.map((name) => `${signerText(name)} ends`),
    ...(others.length === 0 ? [] : ['Others end']),
    'Machine',
    'Last use',
  ];
  const rows = fleet.map((row): Row => {
    const ends = own.map((name) => endOf(row.certificates, [name], at));
    return {
      state: row.standing,
      cells: [
        nodeText(row.node),
        badge(standingLabels[row.standing]),
        ...ends,
        ...(others.length === 0 ? [] : [endOf(row.certificates, others, at)]),
        row.machine === undefined ? '' : markup`<code>${machineText(row.machine)}</code>`,
        row.lastSeen === undefined ? '' : { content: moment(row.lastSeen, at), sort: minuteOf(row.lastSeen) },
      ],
    };
  });
  return table({
    id: 'nodes',
    caption: 'Nodes',
    columns,
    rows,
    states: statesOf(standingLabels),
    empty: 'No node is known: no record of a machine, no certificate of a node, no Node object.',
  });
}

/** The next of these certificates to end. Its state is named where it is not that of the whole node. */
function endOf(certificates: readonly ShownCertificate[], signers: readonly string[], at: string): Cell | string {
  const first = certificates.find(({ signerName }) => signers.includes(signerName));
  return first === undefined ? '' : { content: endText(first, at), sort: minuteOf(first.notAfter) };
}

function endText({ notAfter, state }: ShownCertificate, at: string): Markup {
  if (state === 'valid' || state === 'due') return moment(notAfter, at);
  const text = state === 'ended' ? `ended ${relativeText(notAfter, at)}` : `${relativeText(notAfter, at)}, ${state}`;
  return markup`<span class="bad-text">${text}</span> <small>${utcText(notAfter)}</small>`;
}

/** `aws#aws/111122223333/eu-central-1/i-0123`: the account and the region are the same for most of a cluster. */
function machineText(identity: NonNullable<NodeRow['machine']>): string {
  const [provider = '', name = ''] = identity.split('#', 2);
  const last = name.slice(name.lastIndexOf('/') + 1);
  return last === '' ? identity : `${provider}#${last.length > 24 ? `${last.slice(0, 16)}…` : last}`;
}

export function otherCertificates({ otherCertificates: held, at }: Report): Markup {
  return table({
    id: 'others',
    caption: 'Certificates of others than nodes',
    columns: ['Holder', 'State', 'Ends', 'Signer', 'Serial number'],
    rows: held.map(({ holder, signerName, serial, notAfter, state }) => ({
      state,
      cells: [
        holder,
        badge(certificateLabels[state]),
        { content: moment(notAfter, at), sort: minuteOf(notAfter) },
        signerText(signerName),
        markup`<code>${serial}</code>`,
      ],
    })),
    states: statesOf(certificateLabels),
    empty: 'No certificate of a user, a service or another client is on record.',
  });
}

export function machines({ machines: known, conflicts, locks, at }: Report): Markup {
  if (known === undefined) return markup``;
  const { active, retired, unused, unknown, listed, patterns } = known;
  const list = listed === 0 ? 'empty' : `${listed} listed, of these ${patterns} as patterns`;
  return markup`<h3>First-use conflicts</h3>
    ${table({
      id: 'conflicts',
      caption: 'First-use conflicts',
      columns: ['Node', 'Reason', 'What was refused', 'On record', 'Times', 'Last'],
      rows: conflicts.map(({ node, code, message, holder, times, seen }) => ({
        cells: [
          nodeText(node),
          markup`<code>${code}</code>`,
          { content: message, long: true },
          holder === undefined ? '' : markup`<code>${machineText(holder)}</code>`,
          times ?? '',
          { content: moment(seen, at), sort: minuteOf(seen) },
        ],
      })),
      empty: 'No machine was refused because of another machine, another name or another key in the last 25 hours.',
    })}
    <h3>Locks</h3>
    ${table({
      id: 'locks',
      caption: 'Locks',
      columns: ['Locked', 'Since', 'By', 'Reason'],
      rows: locks.map(({ node, machine, keySha256, since, by, reason }) => ({
        cells: [
          [node, machine, keySha256 === undefined ? undefined : `key ${keySha256}`]
            .filter((each) => each !== undefined)
            .join(', '),
          { content: moment(since, at), sort: minuteOf(since) },
          by,
          reason,
        ],
      })),
      empty: 'No node, machine or key is locked.',
    })}
    <h3>On record</h3>
    <dl class="facts">
      <dt>Active machines</dt>
      <dd>${active}${unused === 0 ? '' : `, ${unused} of them adopted and not used yet`}</dd>
      <dt>Retired machines</dt>
      <dd>${retired}</dd>
      <dt>List of machines that may join</dt>
      <dd>${list}</dd>
    </dl>
    ${
      unknown.length === 0
        ? markup``
        : markup`<h3>Unknown to their platform</h3>
            ${table({
              id: 'unknown',
              caption: 'Machines that their platform does not know',
              columns: ['Node', 'Machine', 'Since'],
              rows: unknown.map(({ node, machine, since }) => ({
                cells: [node, markup`<code>${machine}</code>`, { content: moment(since, at), sort: minuteOf(since) }],
              })),
              empty: '',
            })}`
    }`;
}

export function requests({ requests: rows, at }: Report): Markup {
  return table({
    id: 'requests',
    caption: 'Requests without a certificate',
    columns: ['Request', 'State', 'Since', 'Reason', 'Signer and requester'],
    rows: rows.map(({ name, state, since, signerName, requester, subject, reason, message, times = 1 }) => ({
      state,
      cells: [
        markup`${name ?? subject}${name === undefined ? markup`` : markup` <small>${subject}</small>`}`,
        badge(requestLabels[state]),
        { content: markup`${moment(since, at)}${times > 1 ? ` ${times} times` : ''}`, sort: minuteOf(since) || 0 },
        { content: markup`<code>${reason ?? ''}</code> ${message ?? ''}`, long: true },
        { content: markup`${signerText(signerName)} <small>${requester ?? ''}</small>`, long: true },
      ],
    })),
    states: statesOf(requestLabels),
    empty: 'No request waits, and none was refused.',
  });
}

export function sources({ parts, at, version }: Report): Markup {
  const words = { read: ['good', 'Read'], notAsked: ['calm', 'Not asked for'], failed: ['bad', 'Failed'] } as const;
  return markup`${table({
    id: 'sources',
    caption: 'What was read',
    columns: ['Part', 'State', 'Remarks'],
    rows: parts.map(({ title, state, why, note }) => ({ cells: [title, badge(words[state]), why ?? note ?? ''] })),
    empty: '',
  })}
    <p class="lead">Read ${utcText(at)} UTC by countersign ${version}.</p>`;
}
