import { describe, expect, test } from 'vitest';
import { failure, success } from '../../../../../core/outcome/result.ts';
import type { ProfileAttestation } from '../../../../../core/policy/profile.ts';
import { defaultCluster } from '../../../../../core/configuration/parse.ts';
import type { JsonObject } from '../../../../../core/ports/kubernetes-api.ts';
import type { AttestAnswer, AttestVerdict, SigningEndpoint } from '../../../../../core/ports/signing-endpoint.ts';
import type { MachineLookup } from '../../../../../lambdas/watch-relay/cluster-api/lookup.ts';
import type { SignerPolicy } from '../../../../../lambdas/watch-relay/settings/options.ts';
import { createAskedOnce } from '../../../../../lambdas/watch-relay/request/asked-once.ts';
import { relayRequest } from '../../../../../lambdas/watch-relay/request/work.ts';
import { requests } from '../../../../corpus/attestation/gce-vtpm/real-requests.ts';
import { makeRequest } from '../../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../../harness/x509/requests.ts';
import { approved, denied, key, object } from '../fixtures.ts';
import { createSimulatedApi } from '../simulated-api.ts';
import type { Fault, Verb } from '../simulated-api.ts';
import { createSimulatedEndpoint } from '../simulated-endpoint.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';

const client = 'kubernetes.io/kube-apiserver-client-kubelet';
const serving = 'kubernetes.io/kubelet-serving';
const bootstrap = 'system:bootstrap:abcdef';
const node = 'system:node:n1';

const identity = 'aws#aws/123456789012/eu-central-1/i-1';
const annotations = { 'countersign.dev/identity': identity };
const proven: AttestVerdict = { decision: 'approve', message: `attested as ${identity}`, annotations };
const plain: AttestVerdict = { decision: 'approve', message: 'this signer demands no proof', annotations: {} };
const no: AttestVerdict = {
  decision: 'deny',
  reason: 'TofuNodeTaken',
  message: 'node name "n1" belongs to another machine; and more',
  annotations: { 'countersign.dev/supported-attestation-versions': 'aws/v2,aws/v1' },
};

const unattested: SignerPolicy = { approval: 'approve', kind: 'kube-apiserver-client-kubelet' };
const proof: ProfileAttestation = { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false };
const attested = (change: Partial<ProfileAttestation> = {}, approval: SignerPolicy['approval'] = 'approve') => ({
  ...unattested,
  approval,
  attestation: { ...proof, ...change },
});

interface Case {
  readonly policy?: SignerPolicy;
  readonly verdict?: AttestVerdict;
  readonly answer?: AttestAnswer | Error;
  readonly user?: string;
  readonly request?: RequestSpec;
  readonly evidence?: true;
  readonly signer?: string;
  readonly usages?: readonly string[];
  readonly spec?: JsonObject;
  /** Subresources the requester has leave for. */
  readonly leave?: readonly string[];
  readonly faults?: Partial<Record<Verb, readonly (Fault | undefined)[]>>;
  readonly machines?: MachineLookup;
  /** Happens while attest works. */
  readonly meanwhile?: (server: ReturnType<typeof createSimulatedApi>) => void;
}

const nodeSubject = { O: 'system:nodes', CN: node };
const evidenceBlock =
  '-----BEGIN KUBELET AUTHENTICATOR ATTESTATION PROVIDER-----\nYXdzL3Yx\n-----END KUBELET AUTHENTICATOR ATTESTATION PROVIDER-----\n';

/** One try of one pending request. */
async function attempt({
  policy = unattested,
  verdict = plain,
  answer = { kind: 'verdict', verdict },
  user = bootstrap,
  request = {},
  evidence,
  signer = client,
  usages = ['digital signature', 'client auth'],
  spec = {},
  leave = ['nodeclient', 'selfnodeclient', 'selfnodeserver'],
  faults = {},
  meanwhile,
  machines,
}: Case) {
  const clock = createVirtualClock();
  const left = new Map(Object.entries(faults).map(([verb, list]) => [verb, [...list]]));
  const server = createSimulatedApi({
    clock,
    fault: (verb) => left.get(verb)?.shift(),
    allows: ({ subresource }) => leave.includes(subresource),
  });
  const { pem } = makeRequest({ key, subject: nodeSubject, ...request });
  const text = evidence === undefined ? pem : pem + evidenceBlock;
  const made = object('r', { signer, conditions: [] });
  server.create({
    ...made,
    spec: {
      ...made.spec,
      request: Buffer.from(text).toString('base64'),
      usages,
      username: user,
      uid: 'user-uid',
      groups: ['g1', 'system:authenticated'],
      ...spec,
    },
  });
  const endpoint = createSimulatedEndpoint({
    clock,
    attest: () => {
      meanwhile?.(server);
      return answer;
    },
  });
  const contexts: unknown[] = [];
  const observed: SigningEndpoint = {
    ...endpoint.endpoint,
    attest: (sent, context, signal) => {
      contexts.push(context);
      return endpoint.endpoint.attest(sent, context, signal);
    },
  };
  const ports = {
    api: server.api,
    signer: observed,
    ...(machines === undefined ? {} : { machines }),
    clock,
    policies: new Map([[signer, policy]]),
    asked: createAskedOnce(10),
  };
  const again = async () => {
    const running = relayRequest(
      { uid: 'uid-r', name: 'r', signerName: signer },
      server.find('r'),
      ports,
      new AbortController().signal,
    );
    let ended = false;
    void running.then(() => (ended = true));
    await clock.until(() => ended);
    return running;
  };
  const result = await again();
  const stored = server.find('r');
  return {
    result: result.kind === 'done' ? result.end : result.cause,
    decision: result.kind === 'done' ? result.decision : undefined,
    detail: result.kind === 'retry' ? result.detail : undefined,
    again,
    server,
    reviews: server.reviews.map(({ subresource }) => subresource),
    attests: () => endpoint.attestTotal(),
    contexts,
    signs: endpoint.total(),
    puts: server.count('updateApproval'),
    conditions: (stored?.status['conditions'] ?? []) as readonly JsonObject[],
    annotations: stored?.metadata['annotations'],
  };
}

const untouched = { puts: 0, conditions: [] };
const kept = { 'example.com/unknown': 'kept' };

describe('as the in-tree approver', () => {
  test('a request of a bootstrap token is approved in its words, after its question', async () => {
    const done = await attempt({ spec: { extra: { 'example.com/scope': ['a', 'b'] } } });
    expect(done).toMatchObject({ result: 'approved', reviews: ['nodeclient'], puts: 1, signs: 0, annotations: kept });
    expect(done.conditions).toMatchObject([
      {
        type: 'Approved',
        status: 'True',
        reason: 'AutoApproved',
        message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
        lastUpdateTime: '2026-01-01T00:00:00Z',
      },
    ]);
    expect(done.server.reviews).toEqual([
      {
        user: bootstrap,
        uid: 'user-uid',
        groups: ['g1', 'system:authenticated'],
        extra: { 'example.com/scope': ['a', 'b'] },
        verb: 'create',
        group: 'certificates.k8s.io',
        resource: 'certificatesigningrequests',
        subresource: 'nodeclient',
      },
    ]);
    expect(done.server.crimes).toEqual([]);
  });

  test('a renewal is reviewed as selfnodeclient first, then as nodeclient', async () => {
    const self = await attempt({ user: node });
    expect(self).toMatchObject({ result: 'approved', reviews: ['selfnodeclient'] });
    expect(self.conditions[0]!['message']).toBe(
      'Auto approving self kubelet client certificate after SubjectAccessReview.',
    );
    const other = await attempt({ user: node, leave: ['nodeclient'] });
    expect(other).toMatchObject({ result: 'approved', reviews: ['selfnodeclient', 'nodeclient'] });
    expect(other.conditions[0]!['message']).toBe(
      'Auto approving kubelet client certificate after SubjectAccessReview.',
    );
  });

  test.each([
    [bootstrap, ['nodeclient']],
    [node, ['selfnodeclient', 'nodeclient']],
  ])('without permission %s is left alone: there is no other review and no write', async (user, reviews) => {
    const done = await attempt({ user, leave: [] });
    expect(done).toMatchObject({ ...untouched, result: 'NotPermitted', reviews });
    expect(done.attests()).toBe(0);
  });

  test('permission for another resource does not count', async () => {
    const leave = ['selfnodeclient', 'selfnodeserver', 'countersign-nodeclient'];
    expect(await attempt({ leave })).toMatchObject({ ...untouched, result: 'NotPermitted' });
  });

  test.each<[string, Case]>([
    ['another organization', { request: { subject: { O: 'testers', CN: node } } }],
    ['another common name', { request: { subject: { O: 'system:nodes', CN: 'n1' } } }],
    ['a SAN', { request: { sans: { dns: ['n1'] } } }],
    ['other usages', { usages: ['server auth'] }],
    ['a broken self-signature', { request: { signature: (bytes) => Buffer.from(bytes.toReversed()) } }],
    ['no request at all', { spec: { request: Buffer.from('hello').toString('base64') } }],
  ])('%s is of no known kind, so there is no review and no approval', async (_, change) => {
    const done = await attempt(change);
    expect(done).toMatchObject({ ...untouched, result: 'left', reviews: [] });
    expect(await attempt({ ...change, verdict: no })).toMatchObject({ result: 'denied', reviews: [] });
  });
});

describe('a serving certificate', () => {
  const policy: SignerPolicy = { approval: 'approve', kind: 'kubelet-serving' };
  const asked: Case = {
    policy,
    signer: serving,
    usages: ['digital signature', 'server auth'],
    request: { sans: { dns: ['n1'] } },
  };
  test('is a node’s own to ask for', async () => {
    expect(await attempt({ ...asked, user: node })).toMatchObject({ result: 'approved', reviews: ['selfnodeserver'] });
    for (const user of ['system:node:n2', bootstrap])
      expect(await attempt({ ...asked, user })).toMatchObject({ ...untouched, result: 'left', reviews: [] });
    expect(await attempt({ ...asked, user: node, leave: ['selfnodeclient', 'nodeclient'] })).toMatchObject({
      ...untouched,
      result: 'NotPermitted',
    });
  });

  test('of an attested node needs no leave unless the profile says so', async () => {
    const machine = { ...asked, user: node, verdict: proven };
    expect(await attempt({ ...machine, policy: { ...policy, attestation: proof } })).toMatchObject({
      result: 'approved',
      reviews: [],
    });
    const both = { ...policy, attestation: { ...proof, subjectAccessReview: true } };
    expect(await attempt({ ...machine, policy: both, leave: ['countersign-selfnodeserver'] })).toMatchObject({
      result: 'approved',
      reviews: ['countersign-selfnodeserver'],
    });
  });
});

describe('an attested signer', () => {
  test('approves on the proof, names the machine, and makes no review', async () => {
    const done = await attempt({ policy: attested(), verdict: proven, leave: [] });
    expect(done).toMatchObject({ result: 'approved', reviews: [], annotations: { ...kept, ...annotations } });
    expect(done.conditions[0]).toMatchObject({
      reason: 'AutoApproved',
      message: expect.stringContaining(identity) as unknown,
    });
    expect(done.server.crimes).toEqual([]);
  });

  test('with leave wanted too has names of its own for it', async () => {
    const policy = attested({ subjectAccessReview: true });
    const names = ['countersign-selfnodeclient', 'countersign-nodeclient'];
    expect(await attempt({ policy, verdict: proven, user: node, leave: names.slice(1) })).toMatchObject({
      result: 'approved',
      reviews: names,
    });
    const inTree = await attempt({ policy, verdict: proven, leave: ['nodeclient', 'selfnodeclient'] });
    expect(inTree).toMatchObject({ ...untouched, result: 'NotPermitted', reviews: ['countersign-nodeclient'] });
    expect(inTree.attests()).toBe(0); // without permission no proof is spent
  });

  test('is not approved by an answer that names no machine', async () => {
    const done = await attempt({ policy: attested(), verdict: plain });
    expect(done).toMatchObject({ ...untouched, result: 'EndpointUnexpected' });
  });

  test('in audit asks for leave as if nothing were attested, whatever its review setting', async () => {
    for (const subjectAccessReview of [true, false]) {
      const policy = attested({ mode: 'audit', subjectAccessReview });
      const done = await attempt({ policy, verdict: plain, evidence: true });
      expect(done).toMatchObject({ result: 'approved', reviews: ['nodeclient'] });
      expect(done.conditions[0]!['message']).toMatch(/^Auto approving kubelet client/);
      expect(await attempt({ policy, leave: [] })).toMatchObject({ ...untouched, result: 'NotPermitted' });
    }
  });

  test('that does not require proof makes the review instead where there is no proof', async () => {
    const policy = attested({ required: false });
    expect(await attempt({ policy, verdict: plain })).toMatchObject({ result: 'approved', reviews: ['nodeclient'] });
    expect(await attempt({ policy, verdict: plain, leave: [] })).toMatchObject({
      ...untouched,
      result: 'NotPermitted',
    });
    expect(await attempt({ policy, verdict: proven, evidence: true, leave: [] })).toMatchObject({
      result: 'approved',
      reviews: [],
    });
    expect(await attempt({ policy, verdict: plain, evidence: true })).toMatchObject({ result: 'EndpointUnexpected' });
  });

  test.each(['deny', 'challenge'] as const)('a %s is Denied, with annotations, in one write', async (decision) => {
    const done = await attempt({ policy: attested(), verdict: { ...no, decision } });
    expect(done).toMatchObject({ result: 'denied', puts: 1, annotations: { ...kept, ...no.annotations } });
    expect(done.conditions).toMatchObject([
      {
        type: 'Denied',
        status: 'True',
        reason: 'TofuNodeTaken',
        message: no.message,
        lastUpdateTime: '2026-01-01T00:00:00Z',
      },
    ]);
    expect(done.decision).toEqual({ kind: 'denied', code: 'TofuNodeTaken', message: no.message });
    expect(done.server.crimes).toEqual([]);
  });

  test('whose approval is manual hears of a request once, and writes nothing whatever is said', async () => {
    for (const verdict of [proven, no, { decision: 'ignore', reason: 'UnknownSigner' } as const]) {
      const done = await attempt({ policy: attested({}, 'manual'), verdict });
      expect(done).toMatchObject({ ...untouched, result: 'left', reviews: [] });
      await done.again();
      expect(done.attests()).toBe(1);
      const code = verdict.decision === 'approve' ? 'AutoApproved' : 'TofuNodeTaken';
      if (verdict.decision === 'ignore') expect(done.decision).toBeUndefined();
      else expect(done.decision).toMatchObject({ kind: 'noted', code });
    }
  });

  test('whose approval is manual is asked again when attest was not there', async () => {
    const done = await attempt({ policy: attested({}, 'manual'), answer: { kind: 'busy' } });
    expect(done).toMatchObject({ ...untouched, result: 'EndpointBusy' });
    await done.again();
    expect(done.attests()).toBe(2);
  });
});

test('nothing is done where another approver decides and nothing is attested', async () => {
  const done = await attempt({ policy: { ...unattested, approval: 'manual' } });
  expect(done).toMatchObject({ ...untouched, result: 'left', reviews: [] });
  expect(done.attests()).toBe(0);
});

test('a custom signer is approved for the requesters that its profile names: attest judges that', async () => {
  const own: Case = { policy: { approval: 'approve', kind: 'custom' }, signer: 'example.com/web' };
  const done = await attempt({ ...own, leave: [] });
  expect(done).toMatchObject({ result: 'approved', reviews: [] });
  expect(done.conditions[0]!['message']).not.toMatch(/SubjectAccessReview/);
});

describe('where the cluster attests nothing', () => {
  const cluster = defaultCluster('c', { maxTtlSeconds: 3_600 });
  const policy: SignerPolicy = { ...unattested, localProfile: cluster.profiles.get(client)! };

  test('the profile is applied here, after the review, without asking attest', async () => {
    const done = await attempt({ policy });
    expect(done).toMatchObject({ result: 'approved', reviews: ['nodeclient'], annotations: kept });
    expect(done.attests()).toBe(0);
    expect(await attempt({ policy, leave: [] })).toMatchObject({ ...untouched, result: 'NotPermitted' });
  });

  test.each<[string, Case, string]>([
    ['a SAN', { request: { sans: { dns: ['n1'] } } }, 'SignerValidationFailure'],
    [
      'a broken self-signature',
      { request: { signature: (bytes) => Buffer.from(bytes.toReversed()) } },
      'SignatureInvalid',
    ],
    ['no request at all', { spec: { request: Buffer.from('hello').toString('base64') } }, 'RequestMalformed'],
    ['too much', { spec: { request: 'A'.repeat(200_000) } }, 'RequestTooLarge'],
    ['finding 6: a crowd of groups', { spec: { groups: Array<string>(1_025).fill('a') } }, 'RequestTooLarge'],
    ['a name that is no node’s', { request: { subject: { O: 'system:nodes', CN: 'system:node:' } } }, 'NameReserved'],
    ['a P-224 key', { request: { key: 'P-224' } }, 'KeyNotPermitted'],
  ])('%s is denied', async (_, change, code) => {
    const done = await attempt({ policy, ...change });
    expect(done).toMatchObject({ result: 'denied', decision: { kind: 'denied', code } });
    expect(done.attests()).toBe(0);
  });

  test('requests of gke-exec-auth-plugin are approved where the profile permits their blocks, and reviewed as theirs', async () => {
    const { text, usages, username: user } = requests['with-aik-cert'];
    const from = { usages, user, spec: { request: Buffer.from(text).toString('base64') } };
    const blocks = { requestBlocks: 'gce-vtpm' } as const;
    const permitting = { ...policy, ...blocks, localProfile: { ...cluster.profiles.get(client)!, ...blocks } };
    expect(await attempt({ ...from, policy: permitting })).toMatchObject({
      result: 'approved',
      reviews: ['nodeclient'],
    });
    expect(await attempt({ ...from, policy })).toMatchObject({
      decision: { kind: 'denied', code: 'RequestMalformed' },
    });
    // Where the evidence counts, the endpoint judges it, and the relay reviews nothing.
    const attesting = attested({ providers: ['gce-vtpm'] });
    expect(await attempt({ ...from, policy: attesting, verdict: proven })).toMatchObject({
      result: 'approved',
      reviews: [],
    });
  });

  test('a custom signer is approved only for the requesters that it names', async () => {
    const profile = { ...cluster.profiles.get(client)!, signerName: 'example.com/web', kind: 'custom' as const };
    const custom = {
      usages: { allowed: ['digital signature', 'client auth'], required: [] },
      sans: { dns: [], email: [], ip: [], uri: [], required: false },
    } as const;
    const subject = { commonNames: ['web'], organizations: [], commonNameRequired: true } as const;
    const localProfile = { ...profile, custom, subject, requester: { users: ['jane'], groups: [] } };
    const own: Case = { policy: { approval: 'approve', kind: 'custom', localProfile }, signer: 'example.com/web' };
    const request = { subject: { CN: 'web' } };
    expect(await attempt({ ...own, request, user: 'jane' })).toMatchObject({ result: 'approved' });
    expect(await attempt({ ...own, request, user: 'joe' })).toMatchObject({
      result: 'denied',
      decision: { code: 'RequesterNotAllowed' },
    });
  });
});

test.each<[string, AttestAnswer | Error, string]>([
  ['ignores it', { kind: 'verdict', verdict: { decision: 'ignore', reason: 'UnknownSigner' } }, 'ignored'],
  ['cannot read it', { kind: 'invalid' }, 'invalid'],
  ['is busy', { kind: 'busy', retryAfterSeconds: 3 }, 'EndpointBusy'],
  ['does not let us in', { kind: 'unauthorized', message: 'HTTP 403' }, 'EndpointUnauthorized'],
  ['has no function', { kind: 'functionFailed', status: 502 }, 'EndpointFunctionFailed'],
  ['is a proxy', { kind: 'unexpected', status: 200, message: '?' }, 'EndpointUnexpected'],
  ['is away', new Error('socket hang up'), 'EndpointUnreachable'],
])('an endpoint that %s writes nothing', async (_, answer, result) => {
  for (const policy of [unattested, attested()])
    expect(await attempt({ policy, answer })).toMatchObject({ ...untouched, result });
});

test('a request too large to be read is denied', async () => {
  const violations = [{ code: 'RequestTooLarge', message: 'spec.request has more than 131072 bytes' }] as const;
  const done = await attempt({ answer: { kind: 'refused', violations }, spec: { request: 'A'.repeat(200_000) } });
  expect(done).toMatchObject({ result: 'denied', decision: { code: 'RequestTooLarge' } });
});

describe('the write meets', () => {
  test.each<[Fault, string]>([
    ['Conflict', 'ApiConflict'],
    ['NotFound', 'gone'],
    ['Forbidden', 'ApiForbidden'],
    ['Unauthorized', 'ApiForbidden'],
    ['Invalid', 'ApiRejected'],
    ['TooLarge', 'ObjectTooLarge'],
    ['throttled', 'ApiBusy'],
    ['before', 'ApiUnreachable'],
  ])('%s: %s, and nothing is decided', async (fault, result) => {
    expect(await attempt({ faults: { updateApproval: [fault] } })).toMatchObject({ ...untouched, puts: 1, result });
  });

  test('a lost answer: the next try looks and has it signed, without deciding again', async () => {
    const done = await attempt({ faults: { updateApproval: ['after'] } });
    expect(done).toMatchObject({ result: 'ApiUnreachable', puts: 1 });
    expect(await done.again()).toMatchObject({ kind: 'done', end: 'issued' });
    expect(done.server.count('updateApproval')).toBe(1);
    expect(done.server.crimes).toEqual([]);
  });

  test('a decision that is accepted and not stored is no decision', async () => {
    const done = await attempt({ faults: {} });
    expect(done.result).toBe('approved');
    const clock = createVirtualClock();
    const server = createSimulatedApi({ clock });
    server.create(done.server.find('r')!);
    server.change('r', (old) => ({ ...old, status: {} }));
    const pending = server.find('r')!;
    const api = { ...server.api, updateApproval: () => Promise.resolve({ ok: true as const, value: pending }) };
    const { endpoint: signer } = createSimulatedEndpoint({ clock });
    const ports = { api, signer, clock, policies: new Map([[client, unattested]]), asked: createAskedOnce(1) };
    const key = { uid: 'uid-r', name: 'r', signerName: client };
    const running = relayRequest(key, pending, ports, new AbortController().signal);
    await clock.advance(100);
    expect(await running).toMatchObject({ kind: 'retry', cause: 'ApiRejected' });
  });

  test.each<[string, NonNullable<Case['meanwhile']>]>([
    [
      'a label',
      (server) => server.change('r', (old) => ({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } })),
    ],
    ['another spec', (server) => server.change('r', (old) => ({ ...old, spec: { ...old.spec, username: 'evil' } }))],
    [
      'a later request of that name',
      (server) => {
        server.delete('r');
        server.create(object('r', { uid: 'uid-later', signer: client, conditions: [] }));
      },
    ],
  ])('%s that came while attest judged: nothing of the verdict is written on it', async (_, meanwhile) => {
    const done = await attempt({ meanwhile, policy: attested(), verdict: proven });
    expect(done).toMatchObject({ result: 'ApiConflict', conditions: [], puts: 1 });
  });

  test('a decision of another approver stands', async () => {
    for (const theirs of [approved, denied]) {
      const done = await attempt({ meanwhile: (server) => server.addCondition('r', theirs), verdict: no });
      expect(done).toMatchObject({ result: 'ApiConflict', conditions: [theirs] });
    }
  });
});

test.each<[Fault, string]>([
  ['Forbidden', 'ApiForbidden'],
  ['Invalid', 'ApiRejected'],
  ['throttled', 'ApiBusy'],
  ['before', 'ApiUnreachable'],
  ['after', 'ApiUnreachable'],
])('a review that meets %s is no leave: %s', async (fault, result) => {
  const done = await attempt({ faults: { reviewAccess: [fault] }, user: node });
  expect(done).toMatchObject({ ...untouched, result });
  expect(done.attests()).toBe(0);
});

test.each([{ extra: { a: 'text' } }, { extra: ['a'] }, { uid: 7 }])(
  'a requester that cannot be read is malformed: %j',
  async (spec) => {
    expect(await attempt({ spec })).toMatchObject({ ...untouched, result: 'malformed', reviews: [] });
  },
);

describe('with machines: clusterApi', () => {
  const found = { machines: [], cluster: { deleting: false } };

  test.each<SignerPolicy['approval']>(['approve', 'manual'])(
    'attest is told what was found, approval %s',
    async (by) => {
      const asked: string[] = [];
      const machines: MachineLookup = async ({ subject }) => {
        asked.push(subject.commonName);
        return success(found);
      };
      const { contexts } = await attempt({ policy: attested({}, by), evidence: true, verdict: proven, machines });
      expect(contexts).toEqual([{ clusterApi: found }]);
      expect(asked).toEqual([node]);
    },
  );

  test('a signer without attestation needs no Machine', async () => {
    const machines: MachineLookup = () => Promise.reject(new Error('not to be asked'));
    expect(await attempt({ machines })).toMatchObject({ result: 'approved', contexts: [undefined] });
  });

  test.each<[string, Awaited<ReturnType<MachineLookup>> | Error, string]>([
    ['incomplete copies', failure({ why: 'NotRead', message: 'machines' }), 'MachinesNotRead'],
    ['a Node that may not be read', failure({ why: 'Forbidden', message: 'no' }), 'ApiForbidden'],
    ['a read that is refused', failure({ why: 'Invalid', message: 'no' }), 'ApiRejected'],
    ['no answer', new Error('connection reset'), 'ApiUnreachable'],
  ])('%s: attest is not asked, and the request is tried again', async (_, answer, result) => {
    const machines: MachineLookup = async () => {
      if (answer instanceof Error) throw answer;
      return answer;
    };
    for (const by of ['approve', 'manual'] as const) {
      const done = await attempt({ policy: attested({}, by), evidence: true, machines });
      expect(done).toMatchObject({ ...untouched, result, contexts: [] });
    }
  });
});
