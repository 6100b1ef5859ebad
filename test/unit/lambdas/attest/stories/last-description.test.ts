/**
 * A serving certificate that is decided by what EC2 said about the instance moments ago (decision 0030): when attest calls EC2, and
 * when it does not. Real handlers, real adapters, the strict fake AWS.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { descriptionLasts } from '../../../../../core/attestation/evidence/last-description.ts';
import { refusalWindowOf } from '../../../../../core/attestation/records/request-limits.ts';
import { mostDescribed } from '../../../../../core/attestation/records/stored-records.ts';
import type { IdentityRecord } from '../../../../../core/ports/attestation-store.ts';
import {
  account,
  audience,
  awsSettings,
  openSite,
  prove,
  provedRequest,
  region,
  requestFor,
  signers,
  startAwsPlatform,
} from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, AwsPlatform, Proved, SiteOptions } from '../../../../harness/attestation/attested-site.ts';
import type { FakeInstance } from '../../../../harness/fake-aws/machine/instance.ts';

const node = 'worker-1';
const second = 'eu-west-1';
const own = { ip: ['10.0.0.7'] };

let platform: AwsPlatform;
/** How far the functions' clock is ahead. */
let waited = 0;
const now = () => platform.now() + waited;
const open: AttestedSite[] = [];
beforeAll(async () => {
  platform = await startAwsPlatform();
});
afterEach(() => {
  for (const site of open.splice(0)) site.close();
});
afterAll(() => platform.close());

interface Options {
  readonly aws?: object;
  readonly attestation?: object;
  readonly store?: SiteOptions['store'];
}

async function start({ aws = {}, attestation = {}, store }: Options = {}): Promise<AttestedSite> {
  const profile = { ca: 'ca', maxTtl: '1d', attestation: { providers: ['aws'], ...attestation } };
  const clusters = {
    prod: {
      profiles: {
        [signers.client]: profile,
        [signers.serving]: profile,
        [signers.awsServing]: { ca: 'ca', maxTtl: '1d' },
      },
      attestation: {
        audience: audience('prod'),
        aws: { ...awsSettings, regions: [region, second], ...aws },
        addressRanges: ['192.168.0.0/24'],
      },
    },
  };
  waited = 0;
  const site = await openSite({ clusters, aws: platform.ports, now, ...(store === undefined ? {} : { store }) });
  open.push(site);
  return site;
}

/** How often STS and EC2 answered during `work`, and what came of it. */
async function asking<T>(work: () => Promise<T>): Promise<{ readonly sts: number; readonly ec2: number; said: T }> {
  const [sts, ec2] = [platform.sts.calls.length, platform.ec2.calls.length];
  const said = await work();
  return { sts: platform.sts.calls.length - sts, ec2: platform.ec2.calls.length - ec2, said };
}

const launch = (): FakeInstance => platform.launch(node, { privateIp: '10.0.0.7' });

async function join(site: AttestedSite, instance: FakeInstance, asked: Proved = {}): Promise<void> {
  expect((await site.attest(provedRequest(platform, instance, asked))).said).toBe('approve');
}

/** What a stock kubelet posts. */
const stock = (site: AttestedSite, sans: Proved['csr'] = { sans: own }) =>
  asking(async () => (await site.attest(requestFor({ signerName: signers.serving, by: 'node', csr: sans }))).said);

/** What kubelet-authenticator posts. */
const proved = (site: AttestedSite, instance: FakeInstance, asked: Proved = {}) =>
  asking(async () => {
    const all = { by: 'node', signerName: signers.awsServing, csr: { sans: own }, ...asked } as const;
    return (await site.attest(provedRequest(platform, instance, all))).said;
  });

async function recordOf(site: AttestedSite): Promise<IdentityRecord> {
  const record = await site.store.findNode(node);
  if (record === undefined) throw new Error(`no record of ${node}`);
  return record;
}

const audit = (id: string) => ({ id, at: 0, by: 'me', action: 'reset', subject: node, reason: 'a test' }) as const;

describe('moments after the client certificate', () => {
  test('a node costs one call of EC2, with each kind of serving request', async () => {
    const site = await start();
    const instance = launch();
    expect(await asking(() => join(site, instance))).toMatchObject({ sts: 1, ec2: 1 });
    expect(await stock(site)).toEqual({ sts: 0, ec2: 0, said: 'approve' });
    expect(await proved(site, instance)).toEqual({ sts: 1, ec2: 0, said: 'approve' });
    const names = { ip: [...own.ip, '192.168.0.9'], dns: [node, instance.privateDnsName] };
    expect(await stock(site, { sans: names })).toEqual({ sts: 0, ec2: 0, said: 'approve' });
  });

  test('the sign function issues by the same decision', async () => {
    const site = await start();
    await join(site, launch());
    const object = requestFor({ signerName: signers.serving, by: 'node', csr: { sans: own } });
    expect(await asking(async () => (await site.sign(object)).said)).toEqual({ sts: 0, ec2: 0, said: 'issued' });
  });

  test('in audit mode too', async () => {
    const site = await start({ attestation: { mode: 'audit' } });
    await join(site, launch());
    expect(await stock(site)).toEqual({ sts: 0, ec2: 0, said: 'approve' });
    // A name of another machine is asked about, and then only recorded.
    expect(await stock(site, { sans: { ip: ['10.0.0.8'] } })).toEqual({ sts: 0, ec2: 1, said: 'approve' });
  });

  test('the time ends two minutes after EC2 was asked, however often the answer was used', async () => {
    const site = await start();
    const instance = launch();
    await join(site, instance);
    waited += descriptionLasts / 2;
    expect(await stock(site)).toMatchObject({ ec2: 0 });
    waited += descriptionLasts / 2;
    expect(await stock(site)).toEqual({ sts: 0, ec2: 1, said: 'approve' });
    // This answer is the last one now.
    expect(await proved(site, instance)).toEqual({ sts: 1, ec2: 0, said: 'approve' });
    waited += descriptionLasts;
    expect(await proved(site, instance)).toEqual({ sts: 1, ec2: 1, said: 'approve' });
  });

  test('each place has its own instances', async () => {
    const site = await start();
    const elsewhere = platform.launch('worker-2', { region: second, privateIp: '10.0.0.7' });
    await join(site, launch());
    expect(await asking(() => join(site, elsewhere, { node: 'worker-2' }))).toMatchObject({ ec2: 1 });
    expect(await stock(site)).toMatchObject({ ec2: 0, said: 'approve' });
    const other = { node: 'worker-2', signerName: signers.serving, by: 'node', csr: { sans: own } } as const;
    expect(await asking(async () => (await site.attest(requestFor(other))).said)).toMatchObject({
      ec2: 0,
      said: 'approve',
    });
    expect(platform.ec2.calls.at(-1)).toMatchObject({ account, region: second });
  });
});

describe('EC2 is asked', () => {
  test('for every client certificate', async () => {
    const site = await start();
    const instance = launch();
    for (const asked of [{}, { by: 'node' }, { by: 'node' }] as const)
      expect(await asking(() => join(site, instance, asked))).toMatchObject({ sts: 1, ec2: 1 });
  });

  test('about a name that the instance did not have: it may have it now, or not', async () => {
    const site = await start();
    const instance = launch();
    await join(site, instance);
    const more = { sans: { ip: [...own.ip, '198.51.100.7'] } };
    expect(await stock(site, more)).toEqual({ sts: 0, ec2: 1, said: 'NameNotOwned' });
    expect(await proved(site, instance, { csr: more })).toEqual({ sts: 1, ec2: 1, said: 'NameNotOwned' });
    const [primary, ...others] = instance.interfaces;
    const [first] = primary?.addresses ?? [];
    if (primary === undefined || first === undefined) throw new Error('no interface');
    const elastic = { address: '198.51.100.7', dnsName: 'ec2-198-51-100-7.eu-central-1.compute.amazonaws.com' };
    const interfaces = [{ ...primary, addresses: [{ ...first, public: elastic }] }, ...others];
    platform.aws.change(instance.instanceId, { interfaces });
    expect(await stock(site, more)).toEqual({ sts: 0, ec2: 1, said: 'approve' });
    expect(await stock(site, more)).toEqual({ sts: 0, ec2: 0, said: 'approve' });
  });

  test('where the instance may come back with another key: each use must record its start', async () => {
    const site = await start({ aws: { allowRestart: true } });
    const instance = launch();
    await join(site, instance);
    expect((await recordOf(site)).described).toBeUndefined();
    expect(await stock(site)).toMatchObject({ ec2: 1, said: 'approve' });
    expect(await proved(site, instance)).toMatchObject({ ec2: 1, said: 'approve' });
  });

  test('about evidence with an identity document, which is compared with its answer', async () => {
    const site = await start();
    const instance = launch();
    await join(site, instance);
    expect(await proved(site, instance, { evidence: { version: 'aws/v1' } })).toEqual({
      sts: 1,
      ec2: 1,
      said: 'approve',
    });
  });

  test('about an instance with very many addresses', async () => {
    const site = await start({ aws: { instance: { addresses: 'all' } } });
    const instance = launch();
    const [primary] = instance.interfaces;
    const [first] = primary?.addresses ?? [];
    if (primary === undefined || first === undefined) throw new Error('no interface');
    const addresses = Array.from({ length: mostDescribed }, (_, index) => {
      return { address: `10.0.1.${index + 1}`, dnsName: `ip-10-0-1-${index + 1}.eu-central-1.compute.internal` };
    });
    platform.aws.change(instance.instanceId, { interfaces: [{ ...primary, addresses: [first, ...addresses] }] });
    await join(site, instance);
    expect((await recordOf(site)).described).toBeUndefined();
    expect(await stock(site)).toMatchObject({ ec2: 1, said: 'approve' });
    // What was kept before is not found any more either.
    platform.aws.change(instance.instanceId, { interfaces: instance.interfaces });
    expect(await stock(site)).toMatchObject({ ec2: 1 });
    expect((await recordOf(site)).described).toBeDefined();
    platform.aws.change(instance.instanceId, { interfaces: [{ ...primary, addresses: [first, ...addresses] }] });
    await join(site, instance, { by: 'node' });
    expect((await recordOf(site)).described).toBeUndefined();
  });

  test.each([
    ['as unknown', { unknownSince: 1 }],
    ['again with another key', { restart: { startedAt: 1, since: 1, spkiSha256: '00', contested: false } }],
    [
      'in the future, by another clock',
      (record: IdentityRecord, now: number) => ({ described: { ...record.described!, at: now + 1_000 } }),
    ],
  ] as const)('about an instance that was seen %s', async (_, change) => {
    const site = await start();
    await join(site, launch());
    const record = await recordOf(site);
    const more = typeof change === 'function' ? change(record, now()) : change;
    expect(await site.store.observe({ ...record, ...more, rev: record.rev + 1 })).toBe(true);
    expect(await stock(site)).toMatchObject({ ec2: 1, said: 'approve' });
    expect(await stock(site)).toMatchObject({ ec2: 0, said: 'approve' });
  });

  test('about a machine that an operator adopted', async () => {
    const site = await start();
    await join(site, launch());
    const { spkiSha256: _, described: __, recent: ___, lastUid: ____, ...record } = await recordOf(site);
    expect(await site.register.reset(await recordOf(site), audit('1'))).toEqual({ kind: 'written' });
    expect(await stock(site)).toEqual({ sts: 0, ec2: 0, said: 'AttestationMissing' });
    const adopted = { ...record, rev: 1, uses: 0, renewals: 0, firstSeen: now(), lastSeen: now() };
    expect(await site.register.adopt(adopted, { ...audit('2'), action: 'adopt' })).toEqual({ kind: 'written' });
    expect(await stock(site)).toEqual({ sts: 0, ec2: 1, said: 'approve' });
  });
});

describe('what was seen of one machine admits no other request', () => {
  test('not one with the evidence of another machine', async () => {
    const site = await start();
    await join(site, launch());
    expect(await proved(site, launch())).toEqual({ sts: 0, ec2: 0, said: 'AttestationMissing' });
    const other = platform.launch('worker-2', { privateIp: '10.0.0.7' });
    await join(site, other, { node: 'worker-2' });
    expect(await proved(site, other)).toEqual({ sts: 0, ec2: 0, said: 'TofuNodeMismatch' });
  });

  test('not one with evidence that STS does not confirm', async () => {
    const site = await start();
    const [instance, thief] = [launch(), platform.launch('thief')];
    await join(site, instance);
    const { sts } = prove(platform, thief, { signerName: signers.awsServing, csr: { sans: own } });
    const asked = await proved(site, instance, { evidence: { data: { sts } } });
    expect(asked).toMatchObject({ ec2: 0, said: 'AttestationInvalid' });
  });

  test('not one of a machine that was retired or locked since', async () => {
    const site = await start();
    const instance = launch();
    await join(site, instance);
    const before = await recordOf(site);
    const lock = { id: '01', identity: before.identity, at: 0, by: 'me', reason: 'a test' };
    expect(await site.register.lock(lock, { ...audit('3'), action: 'lock' })).toEqual({ kind: 'written' });
    expect(await proved(site, instance)).toMatchObject({ ec2: 0, said: 'Locked' });
    expect(await site.register.unlock(lock, { ...audit('4'), action: 'unlock' })).toEqual({ kind: 'written' });
    for (const id of platform.aws.instances.keys()) platform.aws.terminate(id);
    await join(site, launch());
    expect((await site.store.findIdentity(before.identity))?.state).toBe('retired');
    expect(await proved(site, instance)).toEqual({ sts: 0, ec2: 0, said: 'Revoked' });
  });
});

test('evidence that waited too long for EC2’s quota is refused and not counted: others have the same bootstrap token', async () => {
  const site = await start();
  const by = { username: 'system:bootstrap:fleet0', groups: ['system:bootstrappers', 'system:authenticated'] };
  const refusals = async () => (await site.store.recall('none', refusalWindowOf(by.username, now()), now())).refusals;
  const object = provedRequest(platform, launch(), { by });
  waited += 6 * 60_000;
  expect(await asking(async () => (await site.attest(object)).said)).toEqual({
    sts: 0,
    ec2: 0,
    said: 'AttestationInvalid',
  });
  expect(await refusals()).toBe(0);
  expect((await site.sign(object)).said).toBe('AttestationInvalid');
  const forged = provedRequest(platform, launch(), { by, evidence: { audience: 'another' } });
  waited = 0;
  expect((await site.attest(forged)).said).toBe('AttestationInvalid');
  expect(await refusals()).toBe(1);
});

test('what an attacker gains: two minutes in which an instance that ended, or its former address, may still serve', async () => {
  const site = await start();
  const instance = launch();
  await join(site, instance);
  platform.aws.terminate(instance.instanceId);
  waited += descriptionLasts - 1_000;
  expect(await stock(site)).toEqual({ sts: 0, ec2: 0, said: 'approve' });
  waited += 1_000;
  expect(await stock(site)).toEqual({ sts: 0, ec2: 1, said: 'IdentityNotAllowed' });
});
