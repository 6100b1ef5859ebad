/** docs/troubleshooting.md quotes only messages that the code has, and leaves out no refusal code and no cause of a delay. */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { refusalCodes } from '../../../core/outcome/outcome.ts';
import { createEventSink } from '../../../lambdas/watch-relay/request/events.ts';
import { causes } from '../../../lambdas/watch-relay/request/result.ts';
import type { RetryCause } from '../../../lambdas/watch-relay/request/result.ts';

const root = resolve(import.meta.dirname, '../../..');
const page = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8');
const sources = globSync('{core,adapters,lambdas,cli,kubelet-authenticator}/**/*.ts', { cwd: root }).map((file) =>
  readFileSync(join(root, file), 'utf8'),
);
const section = (heading: string): string => page.split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!;

/** First cells of a section's tables, apart from heads. */
const firstCells = (text: string): string[] =>
  [...text.matchAll(/^\| (.+?) \|/gm)].map(([, cell]) => cell!).filter((cell) => cell.includes('`'));
const quoted = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, message]) => message!);

/** `…` stands for what a message has from the request: a file of the code has all other parts. */
function isInCode(message: string): boolean {
  const parts = message
    .split('…')
    .map((part) => part.trim())
    .filter((part) => part.length > 2);
  return parts.length > 0 && sources.some((source) => parts.every((part) => source.includes(part)));
}

test.each(['A node does not join or renew', 'The relay', 'The command line'])(
  'each message under "%s" is one of the code',
  (heading) => {
    const messages = firstCells(section(heading))
      .flatMap(quoted)
      .filter((text) => text !== 'join');
    expect(messages.length).toBeGreaterThan(6);
    expect(messages.filter((message) => !isInCode(message))).toEqual([]);
  },
);

test('a message that the code does not have is found', () => {
  expect(isInCode('there is no file …')).toBe(true);
  expect(isInCode('there is not one file …')).toBe(false);
  expect(isInCode('…')).toBe(false);
});

test('each refusal code has a row with a link to its section of the runbook', () => {
  const linked = [...section('Denied or Failed').matchAll(/\[`(\w+)`\]\(runbook\.md#refused-(\w+)\)/g)];
  expect(new Set(linked.map(([, code]) => code))).toEqual(new Set(refusalCodes));
  expect(linked).toHaveLength(refusalCodes.length);
  for (const [, code, anchor] of linked) expect(anchor).toBe(code!.toLowerCase());
});

test('each cause of a delay has a row with the words of its Event', async () => {
  const notes = new Map<string, string>();
  const api = {
    createEvent: (event: { metadata: { name: string }; note: string }) => {
      notes.set(event.metadata.name, event.note);
      return Promise.resolve({ ok: true, value: {} });
    },
  };
  const clock = { now: () => new Date(0) };
  const sink = createEventSink(api as never, clock as never, 'test', AbortSignal.timeout(5_000), () => {});
  const all = Object.keys(causes) as RetryCause[];
  for (const cause of all) sink.delayed({ uid: cause, name: 'n', signerName: 's', requester: 'r' } as never, cause);
  await sink.idle();
  const rows = section('Approved, and no certificate');
  for (const cause of all) {
    const text = /until it is: (.+)\.$/.exec(notes.get(`countersign-${cause.toLowerCase()}.delayed`)!)![1]!;
    expect(rows).toContain(`| \`${text}\` | \`${cause}\` |`);
  }
  expect(rows.match(/^\| `/gm)).toHaveLength(all.length);
});

test('the words of Events and logs in the first section are those of the code', () => {
  const messages = quoted(section('A request stays pending')).filter(
    (text) => text.split(' ').length > 4 && !text.startsWith('kubectl'),
  );
  expect(messages.length).toBeGreaterThan(2);
  expect(messages.filter((message) => !isInCode(message))).toEqual([]);
});
