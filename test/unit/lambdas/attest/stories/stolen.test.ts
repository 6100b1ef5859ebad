/**
 * SECURITY.md, "What is gained by stealing …": what each stolen thing gets, and what it does not; and for the relay's
 * credential everything that can be posted with it, through both real handlers.
 */
import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { decodeRequestObject } from '../../../../../core/kubernetes/certificate-signing-request.ts';
import { requestDigest } from '../../../../../core/kubernetes/request-digest.ts';
import {
  openSite,
  prove,
  provedRequest,
  requestFor,
  signers,
  startAwsPlatform,
} from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, AwsPlatform, SiteOptions } from '../../../../harness/attestation/attested-site.ts';
import { byTier } from '../../../../harness/determinism/tier.ts';
import { withEvidence } from '../../../../harness/fake-aws/machine/node-evidence.ts';
import { makeRequest, newKey } from '../../../../harness/x509/requests.ts';
import { codesIn, tableUnder } from '../security-page.ts';
import { register, serving } from '../threats/attempt.ts';
import type { Scene } from '../threats/attempt.ts';
import { enforced, whereEnforced, whereLess } from '../threats/stolen-relay.ts';
import type { Answered } from '../threats/stolen-relay.ts';

let platform: AwsPlatform;
const open: AttestedSite[] = [];
beforeAll(async () => {
  platform = await startAwsPlatform();
});
afterEach(() => {
  for (const site of open.splice(0)) site.close();
});
afterAll(() => platform.close());

async function start(clusters: SiteOptions['clusters'] = enforced): Promise<Scene> {
  const { ports: aws } = platform;
  let waited = 0;
  const now = () => platform.now() + waited;
  const site = await openSite({ clusters, aws, now });
  open.push(site);
  return {
    platform,
    site,
    proved: (instance, asked) => provedRequest(platform, instance, asked),
    wait: (milliseconds) => void (waited += milliseconds),
  };
}

/** On arrival, then approved; and straight to sign, where attest was not asked before. */
async function answersTo({ posted, context, clusters }: Answered): Promise<readonly string[]> {
  const arriving = await start(clusters);
  const object = await posted(arriving);
  const first = await arriving.site.attest(object, context === undefined ? {} : { context });
  const second = await arriving.site.sign(object);
  const straight = await start(clusters);
  const third = await straight.site.sign(await posted(straight));
  return [first.said, second.said, third.said];
}

const expected = ({ said }: Answered): readonly string[] => [said === 'issued' ? 'approve' : said, said, said];

const tables: readonly (readonly [string, Readonly<Record<string, Answered>>])[] = [
  ["### With the relay's credential, where every node client profile is attested and enforced", whereEnforced],
  ["### With the relay's credential, where a profile demands less", whereLess],
];
describe.each(tables)('%s', (heading, rows) => {
  test.for(Object.entries(rows))('%s', async ([, row]) => {
    expect(await answersTo(row)).toEqual(expected(row));
  });

  test('SECURITY.md says the same', () => {
    const page = tableUnder(heading).map(([posted = '', answer = '']) => [posted, codesIn(answer)]);
    expect(page).toEqual(Object.entries(rows).map(([posted, { said }]) => [posted, [said]]));
  });
});

describe('with the credential of the relay, whatever is posted', () => {
  const key = newKey('P-256');
  const nodes = ['worker-1', 'worker-2', 'cp-1'] as const;
  const requesters = [
    { username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers', 'system:authenticated'] },
    { username: 'system:node:worker-1', groups: ['system:nodes', 'system:authenticated'] },
    { username: 'system:node:cp-1', groups: ['system:nodes', 'system:bootstrappers', 'system:masters'] },
    { username: 'kubernetes-admin', groups: ['system:masters'] },
  ] as const;
  const usages = [
    ['digital signature', 'client auth'],
    ['digital signature', 'server auth'],
    ['digital signature', 'client auth', 'server auth'],
  ] as const;
  const organizations = ['system:nodes', 'system:masters', undefined] as const;
  const allSans = [undefined, { ip: ['10.0.0.7'] }, { dns: ['kubernetes'] }] as const;

  /** Of a machine that renews, of one that comes for the first time, and of one in an account of the thief's own. */
  async function evidenceIn(scene: Scene): Promise<readonly string[]> {
    const registered = platform.launch('worker-1', { privateIp: '10.0.0.7' });
    await register(scene, registered);
    const read = [
      prove(platform, registered, { node: 'worker-1' }),
      prove(platform, platform.launch('worker-2'), { node: 'worker-2' }),
      prove(platform, platform.launch('cp-1', { account: '999988887777' }), { node: 'cp-1', key }),
    ].map(({ version, data }) => withEvidence('', version, JSON.stringify(data)));
    return ['', ...read];
  }

  /** In the default tier each signer gets a fifth of the requests, and all fifths are tried. 5 divides no list's length. */
  const stride = byTier({ default: 5, deep: 1 });

  test.each(Object.keys(enforced['prod']?.['profiles'] as object).map((name, index) => [name, index] as const))(
    '%s: no client certificate for any node, nor for its administrators',
    async (signerName, first) => {
      const scene = await start();
      const evidence = await evidenceIn(scene);
      const got = new Map<string, number>();
      let number = first;
      for (const node of nodes)
        for (const O of organizations)
          for (const sans of allSans) {
            const CN = O === 'system:masters' ? 'admin' : `system:node:${node}`;
            const subject = O === undefined ? { CN } : { O, CN };
            const { pem } = makeRequest({ key, subject, ...(sans === undefined ? {} : { sans }) });
            for (const by of requesters)
              for (const used of usages)
                for (const blocks of evidence) {
                  number += 1;
                  if (number % stride !== 0) continue;
                  const object = requestFor({ signerName, by, usages: used, request: pem + blocks });
                  const { said, certificatePem } = await scene.site.sign(object);
                  got.set(said, (got.get(said) ?? 0) + 1);
                  if (certificatePem === undefined) continue;
                  const { keyUsage, subject: named } = new X509Certificate(certificatePem);
                  // Extended usages; a serving certificate is no login.
                  expect({ named, keyUsage }).toEqual({ named, keyUsage: ['1.3.6.1.5.5.7.3.1'] });
                }
          }
      // What is given at all is given by the stock kubelet's serving signer, for a machine on record.
      if (signerName !== signers.serving) expect(got.has('issued')).toBe(false);
      else if (stride === 1) expect(got.has('issued')).toBe(true);
      expect([...got.keys()].toSorted().filter((said) => said === 'busy' || said === 'invalid')).toEqual([]);
    },
    60_000,
  );
});

// ── Every stolen thing ──────────────────────────────────────────────────────────────────────────────────────────────

/** What the named test file shows: AWS's own permissions do not apply in this process. */
type Shown = Readonly<Record<string, Answered | { readonly elsewhere: string }>>;
const permissions = { elsewhere: 'test/suites/aws/ministack/forbidden.test.ts' };

const anyHops = { instance: { maxHopLimit: 'any' } };
const stolen = {
  'a bootstrap token': {
    'with the metadata of a machine that is not registered yet: its certificate': {
      said: 'issued',
      posted: ({ proved }) => proved(platform.launch('worker-1'), { key: newKey('P-256') }),
    },
    'by itself: nothing': { said: 'AttestationMissing', posted: () => requestFor() },
    'with the metadata of a machine that is registered: nothing': {
      said: 'TofuReuse',
      posted: async (scene) => {
        const worker = platform.launch('worker-1');
        await register(scene, worker);
        return scene.proved(worker);
      },
    },
  },
  "the relay's credential (where every node client profile is attested and enforced)": {
    'what the two tables above list': { elsewhere: 'test/unit/lambdas/attest/threats/stolen-relay.ts' },
  },
  'root on a node': {
    "that node's certificates": {
      said: 'issued',
      posted: async (scene) => {
        const worker = platform.launch('worker-1');
        await register(scene, worker);
        return scene.proved(worker, { by: 'node' });
      },
    },
    'its serving certificates': { said: 'issued', posted: (scene) => serving(scene, { ip: ['10.0.0.7'] }) },
    "not another's, which it may be called": {
      said: 'TofuNodeMismatch',
      posted: async (scene) => {
        const worker = platform.launch('worker-1');
        await register(scene, worker);
        await register(scene, platform.launch('worker-2'), { node: 'worker-2' });
        platform.aws.change(worker.instanceId, { tags: { ...worker.tags, Name: 'worker-2' } });
        return scene.proved(worker, { node: 'worker-2', by: 'node' });
      },
    },
    "not in another's name": {
      said: 'RequesterNotAllowed',
      posted: async (scene) => {
        const worker = platform.launch('worker-1');
        await register(scene, worker);
        const by = { username: 'system:node:worker-1', groups: ['system:nodes', 'system:authenticated'] };
        return scene.proved(worker, { node: 'worker-2', by });
      },
    },
    'lock: nothing any more, once it is locked': {
      said: 'Locked',
      posted: async (scene) => {
        const worker = platform.launch('worker-1');
        await register(scene, worker);
        const lock = { id: '1', nodeName: 'worker-1', at: platform.now(), by: 'operator', reason: 'stolen' };
        await scene.site.register.lock(lock, { ...lock, action: 'lock', subject: 'worker-1' });
        return scene.proved(worker, { by: 'node' });
      },
    },
    'not when it is terminated': {
      said: 'IdentityNotAllowed',
      posted: async (scene) => {
        const worker = platform.launch('worker-1');
        await register(scene, worker);
        platform.aws.terminate(worker.instanceId);
        return scene.proved(worker, { by: 'node' });
      },
    },
  },
  "a pod's way to the metadata service (hop limit 2, host network)": {
    'before the kubelet came: its name': {
      said: 'issued',
      posted: ({ proved }) => proved(hopping()),
      clusters: withPolicy(anyHops),
    },
    '… and then the kubelet is told': {
      said: 'TofuReuse',
      posted: async (scene) => {
        const worker = hopping();
        await register(scene, worker);
        return scene.proved(worker);
      },
      clusters: withPolicy(anyHops),
    },
    'with the default rules: nothing': { said: 'IdentityNotAllowed', posted: ({ proved }) => proved(hopping()) },
  },
  "the attest function's role": {
    'to write verdicts and records, and with them any client certificate': {
      said: 'issued',
      posted: async ({ site }) => {
        const object = requestFor({ node: 'cp-1' });
        await forge(site, object);
        return object;
      },
    },
    'no CA key': permissions,
  },
  "the sign function's role": { 'signatures of the CA key': permissions, 'no verdict, no record': permissions },
  "a caller role's credentials": { 'no right of the functions, and no other cluster': permissions },
  'an AWS role that may start, tag and stop instances in a listed account': {
    'a machine under a name that no machine has': {
      said: 'issued',
      posted: ({ proved }) => proved(platform.launch('worker-9'), { node: 'worker-9' }),
    },
    'with `allowRestart`, a node that it stopped': {
      said: 'issued',
      posted: async (scene) => lookedAt(scene, scene.proved(await restarted(scene))),
      clusters: withPolicy({ allowRestart: true }),
    },
    'without it, not': { said: 'TofuReuse', posted: async (scene) => scene.proved(await restarted(scene)) },
    "not a running node's name": {
      said: 'TofuNodeTaken',
      posted: async (scene) => {
        await register(scene, platform.launch('worker-1'));
        return scene.proved(platform.launch('worker-1'));
      },
    },
    "not a stopped node's name": {
      said: 'TofuNodeTaken',
      posted: async (scene) => {
        const worker = platform.launch('worker-1');
        await register(scene, worker);
        platform.aws.stop(worker.instanceId);
        return scene.proved(platform.launch('worker-1'));
      },
    },
  },
  "an approver's credential (`/approval`)": {
    'what the profiles of users permit, and no reserved name': {
      elsewhere: 'test/unit/core/policy/reserved-names.test.ts',
    },
  },
  "an operator's login (`OperatorPolicyArn`)": {
    'the register, and no verdict': { elsewhere: 'test/unit/lib/attest.test.ts' },
  },
  'a right to change the functions, their roles or their stacks ([below](#ways-to-the-ca))': {
    'which no role or policy of ours has': { elsewhere: 'test/unit/lib/isolation.test.ts' },
  },
} as const satisfies Readonly<Record<string, Shown>>;

function withPolicy(more: object): SiteOptions['clusters'] {
  const attestation = enforced['prod']?.['attestation'] as { readonly aws: object };
  return { prod: { ...enforced['prod'], attestation: { ...attestation, aws: { ...attestation.aws, ...more } } } };
}

/** Its metadata service answers pods. */
function hopping() {
  const worker = platform.launch('worker-1');
  const metadataOptions = { ...worker.metadataOptions, httpPutResponseHopLimit: 2 };
  platform.aws.change(worker.instanceId, { metadataOptions });
  return worker;
}

/** Once; the next time is the second look. */
async function lookedAt<T extends object>({ site }: Scene, object: T): Promise<T> {
  expect((await site.attest(object)).said).toBe('busy');
  platform.advance(120_000);
  return object;
}

async function restarted(scene: Scene) {
  const worker = platform.launch('worker-1');
  await register(scene, worker);
  platform.aws.stop(worker.instanceId);
  // AWS tells launch times in seconds.
  platform.advance(2_000);
  platform.aws.start(worker.instanceId);
  return worker;
}

/** Does what an attacker who may write the attestations table can do. */
async function forge({ store }: AttestedSite, object: object): Promise<void> {
  const decoded = decodeRequestObject(object);
  if (!decoded.ok) throw new Error(decoded.problem.message);
  const { uid } = decoded.value;
  const [now, nodeName, identity] = [platform.now(), 'cp-1', 'aws#aws/111122223333/eu-central-1/i-0123456789abcdef0'];
  const verdict = {
    uid,
    requestDigest: requestDigest('prod', decoded.value, signers.client),
    signerName: signers.client,
    decision: 'approve',
    annotations: {},
    identity,
    registeredAt: now,
    nodeName,
    mode: 'enforce',
    decidedAt: now,
    expiresAt: now + 60_000,
  } as const;
  const seen = { firstSeen: now, lastSeen: now, renewals: 0, uses: 1, rev: 1 };
  const record = {
    identity,
    nodeName,
    state: 'active',
    previousSpkis: [],
    providerId: '',
    addresses: [],
    ...seen,
  } as const;
  const claim = { verdict, once: [], identity: { kind: 'create', record }, newAddresses: [], audit: [] } as const;
  expect(await store.claim(claim, now)).toEqual({ kind: 'written' });
}

describe.each(Object.entries<Shown>(stolen))('an attacker with %s', (_, shown) => {
  test.for(Object.entries(shown))('%s', async ([, each]) => {
    if ('elsewhere' in each) expect(existsSync(join(import.meta.dirname, '../../../../..', each.elsewhere))).toBe(true);
    else expect(await answersTo(each)).toEqual(expected(each));
  });
});

test('SECURITY.md has the same stolen things', () => {
  expect(tableUnder('### What is gained by stealing …').map(([thing]) => thing)).toEqual(Object.keys(stolen));
});

test('SECURITY.md names the ways to the CA', () => {
  const rights = tableUnder('## Ways to the CA').flatMap(([cell = '']) =>
    codesIn(cell).filter((code) => code.includes(':')),
  );
  for (const right of ['lambda:UpdateFunctionCode', 'lambda:UpdateFunctionConfiguration', 'iam:PassRole'])
    expect(rights).toContain(right);
  expect(rights.length).toBeGreaterThan(8);
});
