/**
 * `npm run cdk -- …` is the real CDK command line: run from the folder of an operator, without a network and without credentials.
 * What needs an account ends where CDK asks for credentials.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { byTier } from '../../../harness/determinism/tier.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { alone, npm, root, skipped, type Ran } from './offline.ts';

const cluster = (name: string): string => `version: 1
clusters:
  ${name}:
    cas: {ca: {subject: {commonName: CA}}}
    profiles: {kubernetes.io/kubelet-serving: {}}
    access: {iam: {principals: ['arn:aws:iam::444455556666:role/relay']}}
    aws: {account: '111122223333', region: eu-central-1}
`;

let folder: ReturnType<typeof temporaryFolder>;
/** Holds countersign.yaml (cluster `own`) and policy/other.yaml (cluster `other`). */
let operator: string;
/** Holds nothing. */
let empty: string;
beforeAll(() => {
  folder = temporaryFolder('cdk');
  [operator, empty] = ['operator', 'empty'].map((name) => join(folder.path, name)) as [string, string];
  for (const path of [empty, join(operator, 'policy')]) mkdirSync(path, { recursive: true });
  writeFileSync(join(operator, 'countersign.yaml'), cluster('own'));
  writeFileSync(join(operator, 'policy/other.yaml'), cluster('other'));
});
afterAll(() => folder.remove());

function cdk(args: readonly string[], cwd: string, variables: Readonly<Record<string, string>> = {}): Ran {
  const environment = {
    ...npm,
    HOME: folder.path,
    // Two commands that write to one folder at the same time fail, and suites run side by side.
    CDK_OUTPUT: join(folder.path, 'cdk.out'),
    CDK_DISABLE_CLI_TELEMETRY: 'true',
    AWS_EC2_METADATA_DISABLED: 'true',
    ...variables,
  };
  return alone(['npm', '--prefix', root, 'run', '-s', 'cdk', '--', ...args], environment, cwd);
}

const noCredentials = /no credentials have been configured|Unable to resolve AWS account/;

/** In place of the app: which Node starts it, where, and with which file. */
function probed(args: readonly string[], variables: Readonly<Record<string, string>> = {}): unknown {
  const file = join(folder.path, 'probe.json');
  const app = join(folder.path, 'probe.mjs');
  const seen = '[process.execPath, process.cwd(), process.env.COUNTERSIGN_CONFIG]';
  writeFileSync(
    app,
    `import { writeFileSync } from 'node:fs';\nwriteFileSync('${file}', JSON.stringify(${seen}));\nprocess.exit(3);\n`,
  );
  cdk(['list', ...args], operator, { CDK_APP: `node ${app}`, ...variables });
  return JSON.parse(readFileSync(file, 'utf8'));
}

describe.skipIf(skipped)('the configuration file', () => {
  test('is that of the folder where the operator stands; the pinned Node runs the app in the checkout', () => {
    expect(probed([])).toEqual([realpathSync(process.execPath), root, join(operator, 'countersign.yaml')]);
  });

  test.each([
    [['--config', 'policy/other.yaml'], {}],
    [['--config=policy/other.yaml'], { COUNTERSIGN_CONFIG: 'countersign.yaml' }],
    [[], { COUNTERSIGN_CONFIG: 'policy/other.yaml' }],
  ])('is the named one, relative to that folder: %j %j', (args, variables) => {
    expect(probed(args, variables)).toEqual([expect.anything(), root, join(operator, 'policy/other.yaml')]);
  });

  test.each([['deploy', 'countersign-own'], ['diff'], ['destroy', 'countersign-own', '--force'], ['bootstrap']])(
    'is asked for where it is missing: %s',
    (...args) => {
      expect(cdk(args, empty)).toEqual({
        code: 3,
        out: '',
        err: `there is no countersign.yaml in ${empty}; --config FILE or COUNTERSIGN_CONFIG names another one\n`,
      });
    },
  );

  test('that is named and missing is named in the message', () => {
    const { code, err } = cdk(['list', '--config', 'policy/none.yaml'], operator);
    expect([code, err]).toEqual([3, `there is no ${join(operator, 'policy/none.yaml')}\n`]);
  });
});

describe.skipIf(skipped)('the commands of docs/deploy.md', () => {
  test('bootstrap of a named environment needs no file', () => {
    const { code, err } = cdk(['bootstrap', 'aws://111122223333/eu-central-1'], empty);
    expect(code).not.toBe(0);
    expect(err).toMatch(noCredentials);
    expect(err).not.toContain('countersign.yaml');
    const shown = cdk(['bootstrap', '--show-template'], empty);
    expect([shown.code, shown.out]).toEqual([0, expect.stringContaining('/cdk-bootstrap/${Qualifier}/version')]);
  });

  test('synth writes where the operator stands, and the other commands reach the account', () => {
    expect(cdk(['synth', '--quiet', '-o', 'templates'], operator).code).toBe(0);
    const made = join(operator, 'templates');
    expect(existsSync(join(made, 'countersign-own.template.json'))).toBe(true);
    // The templates in place of the app: bundling takes most of the time of a command.
    const reach = (...args: readonly string[]): void => {
      const { code, err } = cdk(args, operator, { CDK_APP: made });
      expect(code).not.toBe(0);
      expect(err).toMatch(noCredentials);
    };
    const few = [['bootstrap'], ['destroy', 'countersign-own', '--force']];
    const more = [
      ['deploy', 'countersign-own', '--require-approval=never'],
      ['diff', '--fail'],
    ];
    for (const args of byTier({ default: few, deep: [...few, ...more] })) reach(...args);
  });
});
