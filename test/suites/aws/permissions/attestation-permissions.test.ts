/**
 * Where machines prove themselves: each permission that attest and sign have for it is one that something here fails
 * without, or stands in a table with its reason. A node comes for the first time and comes again.
 */
import { describe, expect, test } from 'vitest';
import {
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { requireTools } from '../../../tools/tools.ts';
import { doors, postAt } from '../ministack/doors.ts';
import { insecureSigner, nodeRequests } from '../ministack/node-requests.ts';
import { attestationTable } from './tables.ts';
import { permissionsOf, withoutPermissions } from './statements.ts';

const { skip } = await requireTools('ministack');

const account = '000000000000';
const other = '111122223333';

const exercised = Object.keys(attestationTable.exercised);
const reviewed = Object.keys(attestationTable.reviewed);

const settings = {
  profiles: {
    [insecureSigner]: { ca: 'ca', maxTtl: '1d', freshKeys: true },
    // Serving only: it brings the rights to look at instances, and takes nothing of the node names.
    'kubernetes.io/kubelet-serving': { ca: 'ca', maxTtl: '1d', attestation: { providers: ['aws'] } },
  },
  attestation: {
    aws: {
      accounts: { [account]: {}, [other]: { assumeRole: `arn:aws:iam::${other}:role/look` } },
      regions: ['us-east-1'],
      tags: { cluster: 'demo' },
      nodeName: ['instanceId'],
    },
  },
};

const post = async (deployment: MiniStackDeployment, path: 'sign' | 'attest', body: object) =>
  postAt(deployment, doors.httpApi, path, body, await doors.httpApi.authorize(deployment));

describe.skipIf(skip)('permissions of the stacks where machines prove themselves', () => {
  const assembly = skip ? undefined : synthesiseClusters({ demo: settings });
  const plainAssembly = skip ? undefined : synthesiseClusters({ demo: {} });

  test('are all exercised here, or reviewed', () => {
    const of = (made: typeof assembly): string[] => [...made!.templates.values()].flatMap(permissionsOf);
    const given = of(assembly).filter((permission) => !of(plainAssembly).includes(permission));
    expect(given.toSorted()).toEqual([...exercised, ...reviewed].toSorted());
  });

  /** What a node gets that comes, comes again, and asks what was concluded; by way of sign, and of attest. */
  async function outcomes(left: readonly string[]): Promise<readonly (string | null)[]> {
    const deployment = await deployOnMiniStack(assembly!, {
      change: (template) => withoutPermissions(template, left),
    });
    try {
      const [first, again, third] = nodeRequests(3);
      const answers = [
        await post(deployment, 'sign', first!),
        await post(deployment, 'sign', again!),
        await post(deployment, 'attest', { request: third! }),
      ];
      if (left.length === 0 && answers.some(({ status }) => status !== 200))
        throw new Error(answers.map(({ text }) => text).join('\n'));
      return answers.map(({ outcome }) => outcome);
    } finally {
      await deployment.stop();
    }
  }
  const all = ['issued', 'issued', 'verdict'];

  test('are enough, all together', async () => {
    expect(await outcomes([])).toEqual(all);
  });

  test('are as little exercised as the review says: without all of those, the same comes of it', async () => {
    expect(await outcomes(reviewed)).toEqual(all);
  });

  test.each(exercised)('without %s there is less', async (permission) => {
    const had = await outcomes([permission]);
    expect(had).not.toEqual(all);
    // No request is refused for it: a missing permission is our fault, so the answer is busy.
    expect(had.filter((outcome) => !all.includes(outcome ?? '')).every((outcome) => outcome === 'busy')).toBe(true);
  });
});
