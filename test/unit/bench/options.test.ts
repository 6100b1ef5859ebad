import { expect, test } from 'vitest';
import type { ContenderName } from '../../../bench/contenders/contender.ts';
import { helpText, parseOptions, sectionNames } from '../../../bench/options.ts';
import type { SectionName } from '../../../bench/options.ts';

test.each([
  [['--requests', '99'], '--requests 99'],
  [['--requests', '5001'], '--requests 5001'],
  [['--requests', 'many'], '--requests many'],
  [['--only', 'unknown'], '--only unknown'],
  [['--against', 'docs'], '--against docs'],
  [['--unknown'], '--unknown'],
])('%j are refused, naming what is wrong', (argv, named) => {
  const parsed = parseOptions(argv);
  expect(parsed.kind).toBe('wrong');
  expect(parsed.kind === 'wrong' && parsed.message).toContain(named);
});

const all: readonly ContenderName[] = ['countersign', 'one-process', 'localstack', 'kcm-unthrottled', 'kcm-default'];

test.each<readonly [readonly string[], readonly ContenderName[], readonly SectionName[]]>([
  [[], all, sectionNames],
  [['--quick'], ['countersign', 'kcm-unthrottled', 'kcm-default'], ['approval', 'steps']],
  [['--quick', '--only', 'localstack'], ['localstack'], []],
  [['--only', 'bundles'], [], ['bundles']],
  [['--only', 'memory', '--only', 'steps'], [], ['memory', 'steps']],
  [['--only', 'countersign'], ['countersign'], []],
  [['--only', 'bundles', '--only', 'countersign'], ['countersign'], ['bundles']],
])('%j measures %j and %j', (argv, contenders, sections) => {
  const parsed = parseOptions(argv);
  expect(parsed).toMatchObject({ kind: 'run', options: { contenders, chosen: argv.includes('--only') } });
  expect(parsed.kind === 'run' && [...parsed.options.sections]).toEqual(sections);
});

test('--only keeps the order of the report and drops repetitions', () => {
  const parsed = parseOptions(['--only', 'kcm-default', '--only', 'countersign', '--only', 'kcm-default']);
  expect(parsed).toMatchObject({ kind: 'run', options: { contenders: ['countersign', 'kcm-default'] } });
});

test('--help names everything that --only takes', () => {
  expect(parseOptions(['--help', '--quick']).kind).toBe('help');
  for (const name of [...all, ...sectionNames]) expect(helpText).toContain(name);
});

test('--against takes another checkout', () => {
  const parsed = parseOptions(['--against', '.']);
  expect(parsed.kind === 'run' && parsed.options.against).toBe(process.cwd());
});
