/**
 * The certificates on a line of time: one lane for each signer, one for each CA. The scale is linear for the last seven days and
 * logarithmic from now on, because certificates of nodes end within hours and those of CAs within years. Positions are in per cent,
 * so the picture fits every width without a script and without scaling its text.
 */
import type { CertificateState } from '../model/certificates.ts';
import type { Report } from '../model/shape.ts';
import { signerText } from './labels.ts';
import type { Markup } from './markup.ts';
import { markup } from './markup.ts';
import { spanText, utcText } from './times.ts';

const hour = 3_600_000;
const day = 24 * hour;
/** Where `now` is, in per cent of the width. */
const nowAt = 14;
const pastDays = 7;
const bins = 56;
const laneHeight = 72;
const barHeight = 36;
const caHeight = 30;
const mostLanes = 8;

interface Point {
  readonly at: number;
  readonly state: CertificateState;
}

interface Bin {
  readonly from: number;
  readonly to: number;
  readonly points: readonly Point[];
}

const ticks = [
  [hour, '1 h', true],
  [6 * hour, '6 h', false],
  [day, '1 d', false],
  [7 * day, '7 d', false],
  [30 * day, '30 d', false],
  [90 * day, '90 d', true],
  [365 * day, '1 y', false],
  [5 * 365 * day, '5 y', true],
  [10 * 365 * day, '10 y', false],
] as const;

export function timeline(report: Report): Markup {
  const now = Date.parse(report.at);
  const lanes = lanesOf(report);
  const cas = report.cas.flatMap(({ name, notAfter }) =>
    notAfter === undefined ? [] : [{ name, left: Date.parse(notAfter) - now }],
  );
  if (lanes.length === 0 && cas.length === 0)
    return markup`<p class="empty">No certificate is on record that ends in the time which was read.</p>`;
  const ends = [...lanes.flatMap(({ points }) => points.map(({ at }) => at - now)), ...cas.map(({ left }) => left)];
  // Not Math.max(...ends): a call takes a limited number of arguments.
  const reach = ends.reduce((most, left) => Math.max(most, left * 1.15), 30 * day);
  const place = (left: number): number => placeOf(left, reach);
  const height = lanes.length * laneHeight + cas.length * caHeight + 34;
  const shown = ticks.filter(([left]) => left <= reach);
  const lines = shown.map(
    ([left, label, minor]) =>
      markup`<g${minor ? markup` class="minor"` : markup``}><line x1="${per(place(left))}" x2="${per(place(left))}" y1="0" y2="${height - 26}"/><text x="${per(place(left))}" y="${height - 8}" text-anchor="${place(left) > 97 ? 'end' : 'middle'}">${label}</text></g>\n`,
  );
  return markup`<figure class="timeline">
    <svg role="img" aria-labelledby="timeline-title timeline-text" width="100%" height="${height}">
      <title id="timeline-title">When certificates end</title>
      <desc id="timeline-text">
        One lane for each signer and each CA, from seven days ago to ${spanText(reach)} from now. The table below has
        the same numbers.
      </desc>
      <defs>
        <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="5" height="5" class="f-bad" />
          <line x1="0" y1="0" x2="0" y2="5" class="h" />
        </pattern>
      </defs>
      <g class="grid">${lines}</g>
      ${lanes.map((lane, index) => laneMarkup(lane, index * laneHeight, now, reach))}
      ${cas.map(({ name, left }, index) => caMarkup(name, left, lanes.length * laneHeight + index * caHeight + 16, place(left)))}
      <text class="now" x="${per(nowAt)}" y="${height - 8}" text-anchor="middle">now</text>
      <text class="past" x="0" y="${height - 8}">ended</text>
    </svg>
    <figcaption>
      <span class="key f-good">in time</span><span class="key f-warn">renewal due (from 70 % of the lifetime)</span
      ><span class="key k-bad">renewal late (from 90 %), ended or revoked</span><span class="key k-ca">CA</span>
    </figcaption>
    ${bucketTable(lanes, now)}
  </figure>`;
}

interface Lane {
  readonly name: string;
  readonly points: readonly Point[];
}

function lanesOf({ fleet, otherCertificates }: Report): readonly Lane[] {
  const bySigner = new Map<string, Point[]>();
  const add = (signerName: string, notAfter: string, state: CertificateState): void => {
    const points = bySigner.get(signerName) ?? [];
    points.push({ at: Date.parse(notAfter), state });
    bySigner.set(signerName, points);
  };
  for (const { certificates, standing } of fleet)
    // A certificate of a node that left the cluster may end.
    if (standing !== 'gone')
      for (const { signerName, notAfter, state } of certificates) add(signerName, notAfter, state);
  for (const { signerName, notAfter, state } of otherCertificates) add(signerName, notAfter, state);
  const lanes = [...bySigner]
    .map(([name, points]) => ({ name, points }))
    .toSorted((a, b) => b.points.length - a.points.length);
  if (lanes.length <= mostLanes) return lanes;
  const others = lanes.slice(mostLanes - 1);
  return [
    ...lanes.slice(0, mostLanes - 1),
    { name: `${others.length} other signers`, points: others.flatMap(({ points }) => points) },
  ];
}

function laneMarkup({ name, points }: Lane, top: number, now: number, reach: number): Markup {
  const floor = top + laneHeight - 8;
  const counted = binsOf(points, now, reach);
  const most = Math.max(...counted.map((bin) => bin.points.length));
  const bars = counted.map((bin) => {
    const left = placeOf(bin.from - now, reach);
    const width = Math.max(0.4, placeOf(bin.to - now, reach) - left - 0.25);
    // By the square root: one certificate must be visible beside a thousand.
    const whole = Math.max(4, barHeight * Math.sqrt(bin.points.length / most));
    let bottom = floor;
    const parts = (['bad', 'warn', 'good'] as const).flatMap((tone) => {
      const share = bin.points.filter(({ state }) => tones[state] === tone).length;
      if (share === 0) return [];
      const height = Math.max(3, (whole * share) / bin.points.length);
      bottom -= height;
      return [
        markup`<rect
          class="f-${tone}"
          x="${per(left)}"
          width="${per(width)}"
          y="${bottom.toFixed(1)}"
          height="${height.toFixed(1)}"
          rx="1.5"
        />`,
      ];
    });
    const span = `${utcText(new Date(bin.from).toISOString())} to ${utcText(new Date(bin.to).toISOString())}`;
    return markup`<g>${parts}<title>${bin.points.length} of ${name} end ${span}</title></g>`;
  });
  const ceiling = floor - barHeight - 4;
  const past = markup`<rect class="past" x="0" width="${per(nowAt)}" y="${ceiling}" height="${floor - ceiling}"/>`;
  const line = markup`<line class="now" x1="${per(nowAt)}" x2="${per(nowAt)}" y1="${ceiling}" y2="${floor}"/>`;
  const label = markup`<text class="name" x="0" y="${top + 16}">${signerText(name)}</text>`;
  const amount = markup`<text class="amount" x="100%" y="${top + 16}" text-anchor="end">${points.length}</text>`;
  const ground = markup`<line class="floor" x1="0" x2="100%" y1="${floor}" y2="${floor}"/>`;
  return markup`<g class="lane">${past}${ground}${label}${amount}${bars}${line}</g>\n`;
}

const tones = { ended: 'bad', late: 'bad', revoked: 'bad', due: 'warn', valid: 'good' } as const;

function caMarkup(name: string, left: number, middle: number, x: number): Markup {
  const after = x > 60;
  const label = `CA ${name}, ${left > 0 ? `ends in ${spanText(left)}` : `ended ${spanText(left)} ago`}`;
  const line = markup`<line class="floor" x1="${per(nowAt)}" x2="${per(x)}" y1="${middle}" y2="${middle}"/>`;
  const text = markup`<text x="${after ? -13 : 13}" y="-7" text-anchor="${after ? 'end' : 'start'}">${label}</text>`;
  // The inner picture has its own origin: a path has no positions in per cent.
  const mark = markup`<svg x="${per(x)}" y="${middle}" overflow="visible"><path d="M0-7 7 0 0 7-7 0Z"/>${text}</svg>`;
  return markup`<g class="ca">${line}${mark}</g>\n`;
}

/** Bins without certificates are left out. */
function binsOf(points: readonly Point[], now: number, reach: number): readonly Bin[] {
  const edges = [
    ...Array.from({ length: pastDays + 1 }, (_, index) => now - (pastDays - index) * day),
    ...Array.from({ length: bins }, (_, index) => now + leftAt((index + 1) / bins, reach)),
  ];
  const found = edges.slice(1).map((to, index) => ({ from: edges[index] ?? now, to, points: [] as Point[] }));
  for (const point of points) {
    const bin = found.find(({ to }) => point.at <= to) ?? found.at(-1);
    bin?.points.push(point);
  }
  return found.filter((bin) => bin.points.length > 0);
}

/** Milliseconds from now → per cent of the width. */
function placeOf(left: number, reach: number): number {
  if (left <= 0) return Math.max(0, nowAt * (1 + left / (pastDays * day)));
  return nowAt + (100 - nowAt) * (Math.log1p(left / hour) / Math.log1p(reach / hour));
}

/** A part of the way from now to the right edge → milliseconds from now. */
function leftAt(part: number, reach: number): number {
  return Math.expm1(part * Math.log1p(reach / hour)) * hour;
}

function per(value: number): string {
  return `${value.toFixed(2)}%`;
}

const buckets = [
  [0, 'ended'],
  [hour, 'within 1 h'],
  [6 * hour, 'within 6 h'],
  [day, 'within 1 d'],
  [7 * day, 'within 7 d'],
  [30 * day, 'within 30 d'],
  [365 * day, 'within 1 y'],
  [Infinity, 'later'],
] as const;

function bucketTable(lanes: readonly Lane[], now: number): Markup {
  const rows = lanes.map(({ name, points }) => {
    const counts = buckets.map(() => 0);
    for (const { at } of points) {
      const index = buckets.findIndex(([left]) => at - now <= left);
      counts[index] = (counts[index] ?? 0) + 1;
    }
    return markup`<tr>
      <th scope="row">${signerText(name)}</th>
      ${counts.map((amount) => markup`<td>${amount}</td>`)}
      <td>${points.length}</td>
    </tr>`;
  });
  if (rows.length === 0) return markup``;
  const head = [...buckets.map(([, label]) => label), 'all'].map((label) => markup`<th scope="col">${label}</th>`);
  return markup`<details>
    <summary>The time line as a table</summary>
    <div class="scroll" role="group" aria-label="The time line as a table" tabindex="0">
      <table class="numbers">
        <caption>
          Certificates by signer and by the time in which they end
        </caption>
        <thead>
          <tr>
            <th scope="col">Signer</th>
            ${head}
          </tr>
        </thead>
        <tbody>
          ${rows}
        </tbody>
      </table>
    </div>
  </details>`;
}
