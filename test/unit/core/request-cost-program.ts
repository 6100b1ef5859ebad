/** Prints how many steps of core/ each of these requests takes, as JSON: for request-cost.test.ts. */
import { randomBytes, X509Certificate } from 'node:crypto';
import { openEmbeddedLedger } from '../../../adapters/embedded/ledger.ts';
import { embeddedSigner } from '../../../adapters/embedded/signer.ts';
import type { Authority } from '../../../core/x509/leaf-certificate.ts';
import { issue } from '../../../core/issue.ts';
import { decodeRequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import { reviewByPolicy } from '../../../lambdas/watch-relay/request/policy-only-review.ts';
import type { AddressRange } from '../../../core/policy/patterns.ts';
import { ranges } from '../../harness/attestation/address-ranges.ts';
import { startCounting } from '../../harness/determinism/steps.ts';
import { createTestAuthority } from '../../harness/x509/test-certificates.ts';
import { ordinaryRequest, worstCluster, worstRequest, worstSigner } from '../../harness/x509/worst-request.ts';
import type { ApprovedObject } from '../../harness/x509/worst-request.ts';
import { createWorld, requestOf, said, servingSigner } from '../lambdas/attest/world.ts';
import { noLocks } from '../../harness/kubernetes/no-locks.ts';

const steps = await startCounting();
const cluster = worstCluster();
const { certificatePem, keyPem } = await createTestAuthority('demo ca');
const authority: Authority = {
  name: 'ca',
  certificate: new Uint8Array(new X509Certificate(certificatePem).raw),
  intermediates: [],
  signer: embeddedSigner(keyPem),
};
const { ledger, close } = openEmbeddedLedger(':memory:');

/** What the sign function does for it: `issued`, or the code of the refusal. */
async function sign(json: ApprovedObject): Promise<string> {
  const decoded = decodeRequestObject(json);
  if (!decoded.ok) return decoded.problem.tooLarge === true ? 'RequestTooLarge' : decoded.problem.message;
  const outcome = await issue(decoded.value, cluster, {
    ledger,
    locks: noLocks,
    authority: () => Promise.resolve(authority),
    now: () => Date.now(),
    randomBytes: (count) => randomBytes(count),
  });
  return outcome.kind === 'refused' ? outcome.violations[0].code : outcome.kind;
}

/** What the relay does for it where the cluster attests nothing. */
function relay(json: ApprovedObject): string {
  const decoded = decodeRequestObject(json);
  const profile = cluster.profiles.get(worstSigner);
  if (!decoded.ok || profile === undefined) return decoded.ok ? 'no profile' : decoded.problem.message;
  return reviewByPolicy(profile, json, decoded.value).decision;
}

const counts: Record<string, number> = {};
async function count(name: string, expected: string, work: () => string | Promise<string>): Promise<void> {
  let found = '';
  counts[name] = await steps(async () => {
    found = await work();
  });
  if (found !== expected) throw new Error(`${name}: ${found}, not ${expected}`);
}

const few = { attributes: 2, groups: 2 } as const;
const requests = {
  ordinary: [ordinaryRequest(), 'issued'],
  worst: [worstRequest(), 'issued'],
  half: [worstRequest({ names: 128, attributes: 128, groups: 512 }), 'issued'],
  '257 names': [worstRequest({ ...few, names: 257 }), 'RequestTooLarge'],
  '9 500 names': [worstRequest({ ...few, addresses: 9_500 }), 'RequestTooLarge'],
  'stranger, one name': [worstRequest({ ...few, names: 1, stranger: true }), 'RequesterNotAllowed'],
  'stranger, 256 names': [worstRequest({ ...few, stranger: true }), 'RequesterNotAllowed'],
} as const;
// The first one pays for what is done once, such as reading the CA certificate.
await sign(ordinaryRequest());
for (const [name, [json, expected]] of Object.entries(requests))
  await count(`sign: ${name}`, expected, () => sign(json));
for (const name of ['ordinary', 'worst'] as const)
  await count(`relay: ${name}`, 'approve', () => relay(requests[name][0]));
close();

// A kubelet's serving request with as many addresses as there may be, none of them its machine's, before as many ranges.
const blocks = (first: number): readonly AddressRange[] =>
  ranges(...Array.from({ length: 256 }, (_, index) => `${first}.0.${index}.0/24`));
const world = await createWorld({
  settings: { addressRanges: blocks(11) },
  profile: { reserved: { names: [], addresses: blocks(12), clusterDomain: 'cluster.local' } },
});
const m1 = { machine: 'm1' };
world.platform.machines.set('m1', { nodeNames: ['node-1'], addresses: ['10.0.0.1'], startedAt: 1 });
if (said(await world.attest(requestOf({ evidence: m1 }))) !== 'approve') throw new Error('m1 is not registered');
const serve = (count: number): object =>
  requestOf({
    signerName: servingSigner,
    by: 'node',
    sans: { ip: Array.from({ length: count }, (_, index) => `13.0.0.${index}`) },
  });
for (const [name, addresses] of [
  ['one address', 1],
  ['256 addresses', 256],
] as const) {
  const object = serve(addresses);
  await count(`attest: ${name}`, 'NameNotOwned', async () => said(await world.attest(object)));
}
world.close();
process.stdout.write(JSON.stringify(counts));
