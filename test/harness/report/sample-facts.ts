/** Facts of a cluster with as many nodes as a test wants, the same for the same arguments. */
import { randomBytes } from 'node:crypto';
import { temporaryCa } from '../../../adapters/embedded/authority.ts';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import { violation } from '../../../core/outcome/outcome.ts';
import type { RefusalCode } from '../../../core/outcome/outcome.ts';
import { toPem } from '../../../core/encoding/pem.ts';
import type { IdentityRecord, Verdict } from '../../../core/ports/attestation-store.ts';
import type { HeldCertificate } from '../../../cli/report/model/certificates.ts';
import type { Facts } from '../../../cli/report/model/facts.ts';
import type { RequestView } from '../../../cli/requests/request-view.ts';

export const client = 'kubernetes.io/kube-apiserver-client-kubelet';
export const serving = 'kubernetes.io/kubelet-serving';
const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

const read = <T>(value: T) => ({ state: 'read', value }) as const;

export function machineOf(index: number): string {
  return `aws#aws/111122223333/eu-central-1/i-0${index.toString(16).padStart(16, 'a')}`;
}

export function held(
  holder: string,
  change: Partial<HeldCertificate> & { at: number; left: number; lifetime?: number },
): HeldCertificate {
  const { at, left, lifetime = 24 * hour, ...more } = change;
  return {
    holder,
    node: true,
    signerName: client,
    serial: '1f'.repeat(10),
    notAfter: at + left,
    notBefore: at + left - lifetime,
    caKeyId: 'ca-key',
    revoked: false,
    ...more,
  };
}

export function verdict(
  nodeName: string,
  at: number,
  code?: RefusalCode,
  message = '',
  change: Partial<Verdict> = {},
): Verdict {
  return {
    uid: `verdict-${nodeName}-${at}`,
    requestDigest: 'ab'.repeat(32),
    signerName: client,
    annotations: { 'countersign.dev/evidence': 'aws/v2' },
    nodeName,
    mode: 'enforce',
    decidedAt: at,
    expiresAt: at + 25 * hour,
    ...(code === undefined ? { decision: 'approve' } : { decision: 'deny', violations: [violation(code, message)] }),
    ...change,
  };
}

export function record(
  nodeName: string,
  index: number,
  at: number,
  change: Partial<IdentityRecord> = {},
): IdentityRecord {
  return {
    identity: machineOf(index),
    nodeName,
    state: 'active',
    previousSpkis: [],
    providerId: '',
    addresses: [],
    firstSeen: at - 40 * day,
    lastSeen: at - (index % 19) * hour,
    renewals: 30,
    uses: 31,
    rev: 31,
    ...change,
  };
}

export function request(name: string, at: number, change: Partial<RequestView> = {}): RequestView {
  return {
    name,
    uid: `uid-${name}`,
    createdAt: new Date(at).toISOString().replace(/\.\d+Z$/, 'Z'),
    signerName: client,
    requester: 'system:bootstrap:a1b2c3',
    groups: ['system:bootstrappers'],
    usages: ['digital signature', 'client auth'],
    state: 'pending',
    asked: {
      subject: `O=system:nodes, CN=system:node:${name}`,
      dnsNames: [],
      addresses: [],
      emailAddresses: [],
      uris: [],
      key: 'ECDSA P-256',
      keyFingerprint: 'cd'.repeat(32),
    },
    ...change,
  };
}

export function nodeName(index: number): string {
  return `ip-10-0-${Math.floor(index / 250)}-${(index % 250) + 4}.eu-central-1.compute.internal`;
}

/** A cluster in which nothing is wrong. */
export async function sampleFacts(count: number, at: number): Promise<Facts> {
  const names = Array.from({ length: count }, (_, index) => nodeName(index));
  const { name, cas, profiles } = defaultCluster('prod', { maxTtlSeconds: 86_400 });
  const origin = { now: at - 700 * day, randomBytes };
  const found = await Promise.all(
    [...cas.values()].map(async (configuration) => {
      const { certificate, signer } = await temporaryCa(configuration, origin);
      return { name: configuration.name, configuration, record: { keyId: signer.keyId, certificate, chain: [] } };
    }),
  );
  const caKeyId = found[0]?.record.keyId ?? '';
  return {
    at,
    version: '0.1.0',
    cluster: name,
    records: read({
      identities: names.map((node, index) => record(node, index, at)),
      verdicts: names.map((node, index) => verdict(node, at - (index % 24) * hour)),
      machines: [],
      locks: [],
    }),
    certificates: read(
      names.flatMap((node, index) => {
        const left = (7 + ((index * 7919) % 170) / 10) * hour;
        return [
          held(node, { at, left, caKeyId }),
          held(node, { at, left: ((left * 1.3) % (16 * hour)) + 8 * hour, signerName: serving, caKeyId }),
        ];
      }),
    ),
    cas: read({ cluster: name, cas: found, profiles: [...profiles.values()] }),
    requests: read([]),
    nodes: read(names),
    trust: read([
      {
        name: 'kube-apiserver --client-ca-file',
        place: 'ConfigMap kube-system/extension-apiserver-authentication, client-ca-file',
        bundle: found.map(({ record: { certificate } }) => toPem('CERTIFICATE', certificate)).join(''),
        concern: { kinds: ['kube-apiserver-client', 'kube-apiserver-client-kubelet'] },
        change: '',
      },
      {
        name: 'kubelet --client-ca-file',
        place: 'a file of each node',
        concern: { kinds: ['kube-apiserver-client'] },
        change: '',
      },
    ]),
  };
}

/** The same cluster on a day with work for an operator. */
export async function busyFacts(count: number, at: number): Promise<Facts> {
  const facts = await sampleFacts(count, at);
  const [a, b, c, d, e, f] = Array.from({ length: 6 }, (_, index) => nodeName(index * 3 + 1));
  const { records, certificates, cas, nodes } = facts;
  if (records.state !== 'read' || certificates.state !== 'read' || cas.state !== 'read' || nodes.state !== 'read')
    throw new Error('the sample has all parts');
  const caKeyId = cas.value.cas[0]?.record?.keyId ?? '';
  const silent = new Set([a, b, c]);
  const audited = { mode: 'audit' } as const;
  return {
    ...facts,
    records: read({
      ...records.value,
      machines: [
        { name: 'aws#i-0*', addresses: [], dnsNames: [], addedAt: at - 80 * day, by: 'alice', reason: 'fleet' },
      ],
      verdicts: [
        ...records.value.verdicts,
        verdict(
          d ?? '',
          at - 2 * hour,
          'TofuNodeTaken',
          `node name "${d}" belongs to another machine (${machineOf(10)})`,
        ),
        verdict(
          d ?? '',
          at - 1.6 * hour,
          'TofuNodeTaken',
          `node name "${d}" belongs to another machine (${machineOf(10)})`,
        ),
        verdict(
          'gpu-7.internal',
          at - 5 * hour,
          'IdentityNotAllowed',
          'instance i-0f3c09d2be77aa410 runs in account 999988887777, which is not allowed',
        ),
        verdict(
          'batch-14.internal',
          at - 3 * hour,
          'AttestationMissing',
          'the request has no evidence of its machine',
          audited,
        ),
        verdict(
          'batch-15.internal',
          at - 4 * hour,
          'AttestationMissing',
          'the request has no evidence of its machine',
          audited,
        ),
        verdict('batch-16.internal', at - 4 * hour, undefined, '', audited),
      ],
      locks: [
        {
          id: '01J',
          nodeName: e ?? '',
          at: at - 3 * day,
          by: 'arn:aws:iam::111122223333:role/oncall',
          reason: 'disk taken out for forensics, ticket 4711',
        },
      ],
    }),
    certificates: read([
      ...certificates.value.filter(({ holder }) => !silent.has(holder)),
      held(a ?? '', { at, left: -26 * hour, caKeyId }),
      held(a ?? '', { at, left: -25 * hour, signerName: serving, caKeyId }),
      held(b ?? '', { at, left: -3 * hour, caKeyId }),
      held(b ?? '', { at, left: 9 * hour, signerName: serving, caKeyId }),
      held(c ?? '', { at, left: 1.5 * hour, caKeyId }),
      held(c ?? '', { at, left: 2 * hour, signerName: serving, caKeyId }),
      held('alice', {
        at,
        left: 6 * day,
        lifetime: 7 * day,
        node: false,
        signerName: 'kubernetes.io/kube-apiserver-client',
        caKeyId,
      }),
      held('ci-deployer', {
        at,
        left: 19 * day,
        lifetime: 30 * day,
        node: false,
        signerName: 'kubernetes.io/kube-apiserver-client',
        caKeyId,
      }),
      held('istiod.istio-system.svc', {
        at,
        left: 41 * day,
        lifetime: 90 * day,
        node: false,
        signerName: 'example.com/web',
        caKeyId: 'web-key',
      }),
      held('shop.example.com', {
        at,
        left: 66 * day,
        lifetime: 90 * day,
        node: false,
        signerName: 'example.com/web',
        caKeyId: 'web-key',
      }),
      held('metrics.example.com', {
        at,
        left: 5 * day,
        lifetime: 90 * day,
        node: false,
        signerName: 'example.com/web',
        caKeyId: 'web-key',
      }),
    ]),
    requests: read([
      request('node-csr-x7k2p', at - 47 * minute, { asked: { ...askedOf(`O=system:nodes, CN=system:node:${f}`) } }),
      request('web-renewal-9', at - 18 * minute, {
        signerName: 'example.com/web',
        requester: 'system:serviceaccount:shop:web',
        asked: askedOf('CN=shop.example.com'),
      }),
      request('node-csr-q4m8z', at - 2 * minute),
      request('bob-laptop', at - 31 * minute, {
        signerName: 'kubernetes.io/kube-apiserver-client',
        requester: 'bob',
        state: 'failed',
        reason: 'SubjectNotPermitted',
        message: 'organization "system:masters" is not one that the profile permits',
        asked: askedOf('O=system:masters, CN=bob'),
      }),
    ]),
  };
}

function askedOf(subject: string) {
  return {
    subject,
    dnsNames: [],
    addresses: [],
    emailAddresses: [],
    uris: [],
    key: 'ECDSA P-256',
    keyFingerprint: 'cd'.repeat(32),
  };
}
