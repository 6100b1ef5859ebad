/** What `countersign init` writes: for each combination of answers a file without problems and warnings. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { canAttest, firstConfiguration, platforms } from '../../../../cli/start/first-configuration.ts';
import type { Answers } from '../../../../cli/start/first-configuration.ts';
import { configurationSchema, parseConfiguration } from '../../../../core/configuration/parse.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { run } from '../run.ts';

const folder = temporaryFolder('init');
afterAll(() => folder.remove());

const place = { account: '111122223333', region: 'eu-central-1' };
const combinations: readonly Answers[] = platforms.flatMap((platform) =>
  [{}, { place }].flatMap((where) =>
    [true, false]
      .filter((attestation) => !attestation || canAttest({ platform, ...where }))
      .map((attestation) => ({ cluster: 'prod', platform, ...where, attestation })),
  ),
);

test.each(combinations)('%j', (answers) => {
  const text = firstConfiguration(answers, '3f7a');
  const parsed = parseConfiguration(text, 'countersign.yaml');
  expect(parsed).toMatchObject({ ok: true, value: { warnings: [] } });
  const cluster = parsed.ok ? parsed.value.configuration.clusters.get('prod') : undefined;
  const attested = [...(cluster?.profiles.values() ?? [])].filter(({ attestation }) => attestation !== undefined);
  expect(attested.length).toBe(answers.attestation ? 2 : 0);
  // Without a proof of the machine nothing that a kubelet gets is approved by the relay.
  const approved = [...(cluster?.approval ?? [])].filter(([, how]) => how === 'approve').map(([name]) => name);
  if (answers.platform !== 'eks') expect(approved).toEqual(attested.map(({ signerName }) => signerName));
  expect(text.split('\n').filter((line) => line.length > 150)).toEqual([]);
});

test.each(combinations.filter(({ place: where }) => where !== undefined))(
  '%j: with the caller that the comment asks for, it can be deployed',
  (answers) => {
    const text = firstConfiguration(answers, '3f7a').replace('# access:', 'access:');
    expect(parseConfiguration(text, 'countersign.yaml', { toDeploy: true })).toMatchObject({ ok: true });
  },
);

test('the commented lines are keys that the file may have', () => {
  const text = firstConfiguration({ cluster: 'prod', platform: 'kubeadm', attestation: false }, '3f7a');
  const uncommented = text.replaceAll(/# (?=(requester|subject|access|aws): \{)/g, '');
  expect(uncommented.match(/^ +(requester|subject|access|aws): \{/gm)).toHaveLength(4);
  expect(parseConfiguration(uncommented, 'countersign.yaml', { toDeploy: true })).toMatchObject({ ok: true });
});

test('two deployments without a place have audiences of their own', async () => {
  const audience = async (name: string): Promise<string | undefined> => {
    await run(['init', join(folder.path, name), '--cluster', 'edge', '--platform', 'bare-metal']);
    return /audience: (edge-[0-9a-f]{8})\n/.exec(
      readFileSync(join(folder.path, name, 'countersign.yaml'), 'utf8'),
    )?.[1];
  };
  const [one, other] = [await audience('one'), await audience('other')];
  expect(one).toBeDefined();
  expect(one).not.toBe(other);
});

test('the schema is where the first line of the file says', async () => {
  const file = join(folder.path, 'schema', 'countersign.yaml');
  expect(await run(['init', dirname(file), '--yes'])).toMatchObject({ code: 0, err: '' });
  const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(readFileSync(file, 'utf8')) ?? [];
  expect(JSON.parse(readFileSync(join(dirname(file), schema), 'utf8'))).toEqual(configurationSchema());
});

test('neither file is overwritten, and then neither is written', async () => {
  const kept = join(folder.path, 'schema', '..', 'countersign.schema.json');
  writeFileSync(kept, 'mine');
  const ran = await run(['init', folder.path, '--yes']);
  expect(ran).toMatchObject({ code: 6, out: '', err: expect.stringContaining('nothing was written') as string });
  expect(readFileSync(kept, 'utf8')).toBe('mine');
  expect(existsSync(join(folder.path, 'countersign.yaml'))).toBe(false);
});

test('a folder that cannot be written', async () => {
  const ran = await run(['init', '/dev/null/x', '--yes']);
  expect(ran).toMatchObject({ code: 3, out: '' });
  expect(ran.err).toContain('/dev/null/x/countersign.yaml cannot be written');
});

test('on a terminal each question has its option, and is asked again until it is answered', async () => {
  const asked: string[] = [];
  const answers = ['', 'somewhere', 'bare-metal', '12', '', 'maybe', 'no'];
  const ask = (question: string): Promise<string> => {
    asked.push(question);
    return Promise.resolve(answers.shift() ?? '');
  };
  const ran = await run(['init', join(folder.path, 'asked')], { world: { ask } });
  expect(ran.code).toBe(0);
  expect(ran.err).toMatch(/One of kubeadm.*\n.*twelve digits.*\nyes or no/);
  expect(asked).toHaveLength(7);
  const options = ['--cluster', 'edge', '--platform', 'kubeadm', '--account', '111122223333', '--region', 'eu-west-1'];
  const nothing = (question: string): Promise<string> => Promise.reject(new Error(question));
  const given = await run(['init', join(folder.path, 'given'), ...options, '--no-attestation'], {
    world: { ask: nothing },
  });
  expect(given.code).toBe(0);
});
