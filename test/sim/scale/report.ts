/** Results for people, as lines of one Markdown table. */
import type { Result, Waits } from './run.ts';

const columns: readonly (readonly [string, (result: Result) => string])[] = [
  ['scenario', ({ scenario }) => scenario],
  ['requests', ({ requests, signed }) => (signed === requests ? String(requests) : `${signed} of ${requests}`)],
  ['all signed', ({ seconds }) => `${seconds.toFixed(1)} s`],
  ['floor', ({ floor }) => `${floor.seconds.toFixed(1)} s`],
  ['ratio', ({ ratio }) => ratio.toFixed(2)],
  ['pace', ({ pace }) => `${pace.seconds.toFixed(1)} s`],
  ['tightest', ({ pace }) => pace.quota],
  ['throttles', throttles],
  ['calls × fewest', ({ callRatios }) => callTimes(callRatios)],
  [
    'wait p50 / p99 / longest',
    ({ waits, others, serving }) =>
      waitTimes(waits) +
      (others === undefined ? '' : `, others ${waitTimes(others)}`) +
      (serving === undefined ? '' : `, serving ${waitTimes(serving)}`),
  ],
  ['unfairness', ({ unfairness }) => unfairness.toFixed(2)],
  ['USD', ({ dollars }) => dollars.toFixed(2)],
];

export function tableOf(results: readonly Result[], head: boolean): string {
  const lines = results.map((result) => row(columns.map(([, cell]) => cell(result))));
  return (head ? row(columns.map(([name]) => name)) + row(columns.map(() => '---')) : '') + lines.join('');
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |\n`;
}

function waitTimes({ median, p99, longest }: Waits): string {
  return [median, p99, longest].map((seconds) => seconds.toFixed(1)).join(' / ');
}

const short = {
  frontDoor: 'door',
  lambda: 'λ',
  kms: 'KMS',
  kmsPublicKey: 'key',
  dynamodb: 'DDB',
  apiServer: 'API',
  sts: 'STS',
  ec2: 'EC2',
};

function throttles({ calls }: Result): string {
  const told = Object.entries(calls)
    .filter(([, { throttled }]) => throttled > 0)
    .map(([service, { throttled }]) => `${short[service as keyof typeof short]} ${throttled}`);
  return told.length === 0 ? '–' : told.join(', ');
}

function callTimes(ratios: Result['callRatios']): string {
  return Object.entries(ratios)
    .map(([service, ratio]) => `${short[service as keyof typeof short]} ${ratio.toFixed(2)}`)
    .join(', ');
}
