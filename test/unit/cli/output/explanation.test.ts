/** The dry run must agree with core/issue.ts: the same requests go through both. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { temporaryCa } from '../../../../adapters/embedded/authority.ts';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import { explain } from '../../../../cli/output/explanation.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import type { CaConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { issue } from '../../../../core/issue.ts';
import type { Condition, RequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import { refusalMessage, refusalReason } from '../../../../core/outcome/outcome.ts';
import type { SignOutcome } from '../../../../core/outcome/outcome.ts';
import { triage } from '../../../../core/kubernetes/triage.ts';
import { makeRequest, otherName } from '../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';
import { now } from '../run.ts';
import { noLocks } from '../../../harness/kubernetes/no-locks.ts';

const cluster = defaultCluster('demo', { maxTtlSeconds: 86_400 });
const approved: readonly Condition[] = [{ type: 'Approved', status: 'True' }];

const specs: readonly RequestSpec[] = [
  { subject: { O: 'system:nodes', CN: 'system:node:n1' } },
  { subject: { O: 'system:nodes', CN: 'system:node:n1' }, sans: { dns: ['n1'] } },
  { subject: { O: 'system:nodes', CN: 'system:node:' }, sans: { dns: ['n1'] } },
  { subject: { O: 'system:masters', CN: 'alice' } },
  { subject: { CN: 'alice' }, key: 'Ed25519' },
  { subject: { CN: 'alice' }, key: 'P-224' },
  { subject: { CN: 'alice' }, hash: 'sha1' },
  { subject: { CN: 'alice' }, sans: { raw: [otherName('1.2.3', Buffer.from('0c0161', 'hex'))] } },
  { subject: { CN: 'alice' }, signature: (signature) => signature.fill(1) },
  { subject: { CN: 'alice' }, tamper: (der) => Buffer.concat([der, Buffer.of(0)]) },
];
const signers: readonly (string | undefined)[] = [...cluster.profiles.keys(), 'k8s.example.com/other', undefined];
const usages: readonly (readonly string[])[] = [
  ['digital signature', 'client auth'],
  ['digital signature', 'server auth'],
  ['coffee'],
  [],
];
const states: readonly Pick<RequestObject, 'conditions' | 'hasCertificate'>[] = [
  { conditions: approved, hasCertificate: false },
  { conditions: [], hasCertificate: false },
  { conditions: [...approved, { type: 'Denied' }], hasCertificate: false },
  { conditions: [...approved, { type: 'Failed' }], hasCertificate: false },
  { conditions: [{ type: 'Approved', status: 'False' }], hasCertificate: false },
  { conditions: approved, hasCertificate: true },
  { conditions: [], hasCertificate: true },
];

test('explaining agrees with issuing on every combination', async () => {
  const { ledger, close } = openEmbeddedLedger(':memory:');
  const authority = await temporaryCa(cluster.cas.get('ca') as CaConfiguration, { now, randomBytes });
  const ports = { ledger, locks: noLocks, authority: () => Promise.resolve(authority), now: () => now, randomBytes };
  const seen = new Map<string, number>();
  let number = 0;
  for (const request of specs.map((spec) => makeRequest(spec).bytes))
    for (const signerName of signers)
      for (const asked of usages)
        for (const state of states) {
          number += 1;
          const object: RequestObject = {
            apiVersion: signerName === undefined ? 'certificates.k8s.io/v1beta1' : 'certificates.k8s.io/v1',
            name: `csr-${number}`,
            uid: `uid-${number}`,
            ...(signerName === undefined ? {} : { signerName }),
            request,
            usages: asked,
            username: 'alice',
            groups: [],
            requesterNodes: [],
            ...state,
          };
          const { outcome, reason, message } = explain(object, cluster, now, { certificate: '', caIsConfigured: true });
          // What is pending is explained ahead of time.
          const pending = triage(object) === 'NotApproved';
          const done = await issue(pending ? { ...object, conditions: approved } : object, cluster, ports);
          const ours = signerName === undefined || cluster.profiles.has(signerName);
          const expected = ended(done, pending, ours);
          seen.set(expected.outcome, (seen.get(expected.outcome) ?? 0) + 1);
          expect({ object, explained: { message, reason, outcome } }).toMatchObject({ object, explained: expected });
        }
  close();
  // Every way a request can end was met.
  expect([...seen.keys()].toSorted()).toEqual(['denied', 'failed', 'foreign', 'ignore', 'issue', 'refuse', 'wait']);
  expect(number).toBe(10 * 6 * 4 * 7);
});

const settled = {
  Denied: 'denied',
  Failed: 'failed',
  // Its certificate is empty here.
  AlreadyIssued: 'foreign',
  UnknownSigner: 'ignore',
  NotApproved: '',
};

/** `ours`: the signer is one of the cluster's. For other requests the sign handler may name the state first, and the command names the signer. */
function ended(
  outcome: SignOutcome,
  pending: boolean,
  ours: boolean,
): { outcome: string; reason?: string; message?: string } {
  switch (outcome.kind) {
    case 'issued':
      return { outcome: pending ? 'wait' : 'issue' };
    case 'refused':
      return {
        outcome: 'refuse',
        reason: refusalReason(outcome.violations),
        message: refusalMessage(outcome.violations),
      };
    case 'ignored':
      return { outcome: ours ? settled[outcome.why] : 'ignore' };
    case 'invalid':
    case 'busy':
      return { outcome: outcome.kind };
  }
}
