/**
 * SECURITY.md, "Proof of the machine", row by row: each attempt is refused with the code that stands there, whether the
 * relay forwards the request on arrival or the attacker posts it straight to the sign endpoint. Real handlers, real
 * adapters, the strict fake AWS. The table is complete by its type, and is the page's by a test.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RefusalCode } from '../../../../core/outcome/outcome.ts';
import {
  openSite,
  provedRequest,
  requestFor,
  signers,
  startAwsPlatform,
} from '../../../harness/attestation/attested-site.ts';
import type { AttestedSite, AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import { codesIn, tableUnder } from './security-page.ts';
import { clusters } from './threats/attempt.ts';
import type { Attempt, Scene } from './threats/attempt.ts';
import { evidenceAttempts } from './threats/evidence-attempts.ts';
import { machineAttempts } from './threats/machine-attempts.ts';

const threats = {
  'hold a bootstrap token and nothing else': ['AttestationMissing'],
  "read requests, or the relay's traffic: tokens, signatures, documents of older nodes": [
    'AttestationInvalid',
    'SignatureInvalid',
  ],
  "replay another cluster's, signer's or node's evidence, or an EKS token": ['AttestationInvalid'],
  'send a genuine signed document and a forged one beside it': ['AttestationInvalid'],
  'claim to be another instance': ['AttestationInvalid', 'IdentityNotAllowed'],
  'own another AWS account': ['IdentityNotAllowed', 'AttestationInvalid'],
  'start an instance in a listed account': ['IdentityNotAllowed'],
  'steer the STS call (host, action, redirect, doubled or cased parameters)': ['AttestationInvalid'],
  'choose the session name of a role it may assume': ['AttestationInvalid'],
  'claim the name of a node that exists, a control-plane node included': ['TofuNodeTaken'],
  'register a machine it has under a second name': ['TofuNodeMismatch'],
  'come back with a machine that is registered, and a bootstrap token': ['TofuReuse'],
  'use the evidence of an instance that was terminated': ['IdentityNotAllowed'],
  'swap the root volume of a node': ['IdentityNotAllowed'],
  'race two first uses': ['TofuNodeTaken', 'TofuReuse'],
  'use a verdict for another request': ['UidReused'],
  'be approved, and then be removed before sign issues the certificate': ['Revoked', 'Locked'],
  "ask for a serving certificate with another machine's address, a service's name or the control plane's": [
    'NameNotOwned',
    'NameReserved',
    'SanNotPermitted',
  ],
  'send evidence in an unknown form': ['AttestationVersion', 'AttestationInvalid'],
  'send two requests, blocks out of order or twice, headers, or bytes around them': ['RequestMalformed'],
} as const satisfies Readonly<Record<string, readonly RefusalCode[]>>;

const attempts: Readonly<Record<keyof typeof threats, Readonly<Record<string, Attempt>>>> = {
  ...evidenceAttempts,
  ...machineAttempts,
};

let platform: AwsPlatform;
const open: AttestedSite[] = [];
beforeAll(async () => {
  platform = await startAwsPlatform();
});
afterEach(() => {
  platform.sts.mend();
  for (const site of open.splice(0)) site.close();
});
afterAll(() => platform.close());

async function start({ store }: Pick<Attempt, 'store'> = {}): Promise<Scene> {
  const { ports: aws } = platform;
  let waited = 0;
  const now = () => platform.now() + waited;
  const site = await openSite({ clusters, aws, now, ...(store === undefined ? {} : { store }) });
  open.push(site);
  return {
    platform,
    site,
    proved: (instance, asked) => provedRequest(platform, instance, asked),
    wait: (milliseconds) => void (waited += milliseconds),
  };
}

describe.each(Object.entries(attempts))('who can %s', (_, each) => {
  test.for(Object.entries(each))('%s', async ([, attempt]) => {
    const { code, says = /./, posted, attested = code, cluster = 'prod' } = attempt;
    const arriving = await start(attempt);
    const object = await posted(arriving);
    const first = await arriving.site.attest(object, { cluster });
    const second = await arriving.site.sign(object, { cluster });
    expect([first.said, second.said]).toEqual([attested, code]);
    expect(second.message).toMatch(says);

    const straight = await start(attempt);
    const answer = await straight.site.sign(await posted(straight), { cluster });
    expect(answer.said).toBe(code);
    expect(answer.message).toMatch(says);
  });
});

test('who can do nothing of this is let in, and the same bytes get the same answer', async () => {
  const { site, proved } = await start();
  const worker = platform.launch('worker-1', { privateIp: '10.0.0.7' });
  const first = proved(worker);
  expect((await site.attest(first)).said).toBe('approve');
  const { said, certificatePem } = await site.sign(first);
  expect(said).toBe('issued');
  expect((await site.attest(first)).said).toBe('approve');
  expect((await site.sign(first)).certificatePem).toBe(certificatePem);
  expect((await site.sign(proved(worker, { by: 'node' }))).said).toBe('issued');
  const asked = { by: 'node', csr: { sans: { ip: ['10.0.0.7'], dns: ['worker-1'] } } } as const;
  expect((await site.sign(requestFor({ ...asked, signerName: signers.serving }))).said).toBe('issued');
  expect((await site.sign(proved(worker, { ...asked, signerName: signers.awsServing }))).said).toBe('issued');
});

test('SECURITY.md has the same rows, each with its codes, and each code is tried', () => {
  const page = tableUnder('## Proof of the machine').map(([threat = '', , codes = '']) => [threat, codesIn(codes)]);
  expect(page).toEqual(Object.entries(threats));
  const tried = Object.entries(attempts).map(([threat, each]) => [
    threat,
    [...new Set(Object.values(each).map(({ code }) => code))].toSorted(),
  ]);
  expect(Object.fromEntries(tried)).toEqual(
    Object.fromEntries(Object.entries(threats).map(([threat, codes]) => [threat, [...codes].toSorted()])),
  );
});
