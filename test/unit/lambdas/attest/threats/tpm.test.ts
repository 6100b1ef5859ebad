/**
 * SECURITY.md, "With a TPM", row by row, through the real handlers and the shipped provider. The TPMs are models in memory, which also
 * make what no real TPM makes; test/suites/oracle/software-tpm and test/suites/node/tpm have real ones.
 */
import 'reflect-metadata';
import { createHash, createHmac } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { bindingDigest } from '../../../../../core/attestation/evidence/binding-digest.ts';
import { evidenceLabels } from '../../../../../core/attestation/evidence/evidence.ts';
import { now } from '../../../../corpus/attestation/tpm/certificates.ts';
import { cas, certificate, ek as certifiedEk } from '../../../../corpus/attestation/tpm/machine.ts';
import { openSite, requestFor } from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, CertificateSigningRequest } from '../../../../harness/attestation/attested-site.ts';
import { activateCredential, createAk, createEk, nameOf, quote } from '../../../../harness/tpm/model-tpm.ts';
import type { Ak, Ek, QuoteOptions } from '../../../../harness/tpm/model-tpm.ts';
import * as der from '../../../../harness/x509/der-writer.ts';
import { makeRequest, newKey, pemBlock } from '../../../../harness/x509/requests.ts';
import type { TestKey } from '../../../../harness/x509/requests.ts';
import { askBoth, describeThreats } from './rows.ts';
import type { Asked, Threat } from './rows.ts';

const signer = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm';
const audience = 'edge/site-1/prod';
const hex = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const b64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

interface Machine {
  readonly ek: Ek;
  readonly ak: Ak;
}
const machine = (ek = createEk('P-256')): Machine => ({ ek, ak: createAk('P-256') });
const nameInList = ({ ek }: Machine) => `tpm#${hex(ek.spki)}`;

interface Sent {
  readonly node?: string;
  readonly key?: TestKey;
  /** Whose binding digest is quoted and proved, if it is not the one of this request. */
  readonly boundTo?: TestKey;
  readonly quote?: Omit<QuoteOptions, 'extraData'>;
  readonly pcr7?: number;
  readonly ek?: object;
  /** The challenge, and who opens it. */
  readonly answer?: { readonly challenge: string; readonly by: Machine };
  readonly activation?: object;
}

const clock = { now };

function posted(by: Machine, sent: Sent = {}): CertificateSigningRequest {
  const { node = 'edge-1', key = newKey('P-256'), boundTo = key } = sent;
  const bound = { audience, signerName: signer, nodeName: node, nonce: '', spki: boundTo.spki };
  const binding = Buffer.from(bindingDigest(bound), 'hex');
  const pcrs = new Map([[7, Buffer.alloc(32, sent.pcr7 ?? 7)]]);
  const { attest, sig } = quote(by.ak, binding, pcrs, sent.quote);
  const evidence = {
    v: 1,
    ek: sent.ek ?? { spki: b64(by.ek.spki) },
    ak: b64(by.ak.area),
    quote: { attest: b64(attest), sig: b64(sig), pcrs: { 7: pcrs.get(7)!.toString('hex') } },
    ...(sent.answer === undefined ? {} : { activation: open(sent.answer, by.ak, binding) }),
    ...(sent.activation === undefined ? {} : { activation: sent.activation }),
  };
  const named = sent.ek === undefined ? by.ek.spki : certifiedOrNamed(sent.ek);
  const csr = makeRequest({
    key,
    subject: { O: ['system:nodes'], CN: `system:node:${node}` },
    extensions: [{ oid: '1.3.6.1.4.1.11129.2.1.21', value: der.utf8(`tpm:///${hex(named)}`) }],
  });
  const blocks = [
    pemBlock(evidenceLabels.provider, Buffer.from('tpm/v1')),
    pemBlock(evidenceLabels.data, Buffer.from(JSON.stringify(evidence))),
  ];
  return requestFor({ node, signerName: signer, request: csr.pem + blocks.join('') });
}

function certifiedOrNamed(ek: object): Uint8Array {
  return 'spki' in ek ? Buffer.from(String(ek.spki), 'base64') : certifiedEk.spki;
}

/** As a TPM does that has both keys; a TPM that cannot open it has no secret. */
function open({ challenge, by }: NonNullable<Sent['answer']>, ak: Ak, binding: Buffer): object {
  const read = JSON.parse(challenge) as { readonly challenge: string; readonly credential: string };
  const secret = secretOf(by, ak, Buffer.from(read.credential, 'base64'));
  return { challenge: read.challenge, proof: createHmac('sha256', secret).update(binding).digest('base64') };
}

function secretOf({ ek }: Machine, ak: Ak, credential: Buffer): Buffer {
  try {
    return activateCredential(ek, nameOf(ak.area), credential);
  } catch {
    return Buffer.alloc(32);
  }
}

const opened: AttestedSite[] = [];
afterEach(() => {
  for (const site of opened.splice(0)) site.close();
});

interface Scene {
  readonly site: AttestedSite;
  readonly listed: Machine;
  readonly ask: (object: CertificateSigningRequest) => Promise<Asked>;
  /** The annotation of a machine that is challenged. */
  readonly challenged: (by: Machine, sent?: Sent) => Promise<string>;
  readonly join: (by: Machine, sent?: Sent) => Promise<Asked>;
  readonly allow: (one: Machine) => Promise<void>;
}

async function scene(tpm: object = { nodeName: ['pattern:edge-*'] }, attestation: object = {}): Promise<Scene> {
  const profiles = { [signer]: { attestation } };
  const refuse = () => Promise.reject(new Error('no AWS'));
  const site = await openSite({
    clusters: { prod: { profiles, approval: { [signer]: 'approve' }, attestation: { audience, tpm } } },
    aws: { sts: refuse, ec2: { describeInstance: refuse }, regionCertificates: new Map() },
    now: () => clock.now,
  });
  opened.push(site);
  const listed = machine();
  let items = 0;
  const allow = async (one: Machine) => {
    const about = { by: 'operator', reason: 'rack 3' };
    const entry = { name: nameInList(one), addresses: [], dnsNames: [], addedAt: clock.now, ...about };
    const audit = { id: String((items += 1)), at: clock.now, action: 'allow', subject: entry.name, ...about } as const;
    await site.register.allowMachine(entry, audit);
  };
  await allow(listed);
  const ask: Scene['ask'] = (object) => askBoth(site, object);
  const challenged: Scene['challenged'] = async (by, sent) => {
    const { said, message, annotations = {} } = await site.attest(posted(by, sent));
    const challenge = annotations['countersign.dev/attestation-challenge'];
    if (challenge === undefined) throw new Error(`${said}: ${message}`);
    return challenge;
  };
  return {
    site,
    listed,
    ask,
    challenged,
    join: async (by, sent = {}) => ask(posted(by, { ...sent, answer: { challenge: await challenged(by, sent), by } })),
    allow,
  };
}

const threats: Readonly<Record<string, Threat>> = {
  'offer a genuine TPM of their own as that of a node (a cuckoo)': {
    codes: ['IdentityNotAllowed'],
    tries: [async () => (await scene()).ask(posted(machine()))],
  },
  "do so where a manufacturer's root is trusted and the list is not asked": {
    codes: ['issued'],
    tries: [
      async () => {
        const roots = { roots: [cas.root.pem], intermediates: [cas.maker.pem] };
        const { join } = await scene({ machines: 'any', ...roots, nodeName: ['pattern:edge-*'] });
        return join(machine(certifiedEk), { ek: { cert: b64(certificate) } });
      },
    ],
  },
  'name the endorsement key of a node, which is no secret, and quote with a key of their own': {
    codes: ['AttestationChallenge', 'AttestationInvalid'],
    tries: [
      async () => {
        const { ask, listed } = await scene();
        return ask(posted(machine(), { ek: { spki: b64(listed.ek.spki) } }));
      },
      async () => {
        const { ask, challenged, listed } = await scene();
        const thief = machine();
        const named = { ek: { spki: b64(listed.ek.spki) } };
        const challenge = await challenged(thief, named);
        return ask(posted(thief, { ...named, answer: { challenge, by: thief } }));
      },
    ],
  },
  'steal the blob of an attestation key': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, join, listed } = await scene();
        await join(listed);
        // The public half is known. Without the private half a quote is signed with another key.
        const { area } = listed.ak;
        return ask(posted({ ek: listed.ek, ak: { ...createAk('P-256'), area } }));
      },
    ],
  },
  'stand between the node and attest, and have the node answer a challenge for a key of theirs': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, challenged, listed } = await scene();
        const own = newKey('P-256');
        const answer = { challenge: await challenged(listed, { key: own }), by: listed };
        return ask(posted(listed, { answer, boundTo: own }));
      },
    ],
  },
  'put the challenge of another machine into an annotation': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, allow, challenged, listed } = await scene();
        const other = machine();
        await allow(other);
        const challenge = await challenged(other, { node: 'edge-2' });
        return ask(posted(listed, { answer: { challenge, by: listed } }));
      },
    ],
  },
  'answer a challenge twice, or late': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, challenged, listed } = await scene();
        const answer = { challenge: await challenged(listed), by: listed };
        await ask(posted(listed, { answer }));
        return ask(posted(listed, { answer, quote: { clock: 6_000n } }));
      },
      async () => {
        const { ask, challenged, listed } = await scene();
        const answer = { challenge: await challenged(listed), by: listed };
        clock.now += 121_000;
        return ask(posted(listed, { answer }));
      },
    ],
  },
  'replay a quote, or roll a virtual TPM back to a snapshot': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, join, listed } = await scene();
        const shown = newKey('P-256');
        await join(listed, { key: shown });
        return ask(posted(listed, { boundTo: shown }));
      },
      async () => {
        const { ask, join, listed } = await scene();
        await join(listed);
        return ask(posted(listed, { quote: { clock: 4_999n } }));
      },
      async () => {
        const { ask, join, listed } = await scene();
        await join(listed);
        return ask(posted(listed, { quote: { clock: 9_000n, resetCount: 2 } }));
      },
    ],
  },
  'have a key outside of the TPM, or a key that signs anything, taken for an attestation key': {
    codes: ['AttestationInvalid'],
    tries: [0x00040072, 0x00050070, 0x00050062, 0x00050052].map((attributes) => async () => {
      const { ask, listed } = await scene();
      return ask(posted({ ek: listed.ek, ak: createAk('P-256', { attributes }) }));
    }),
  },
  'boot another system on the machine': {
    codes: ['IdentityNotAllowed'],
    tries: [
      async () => {
        const { ask, listed } = await scene(undefined, { pcrs: { values: { 7: ['07'.repeat(32)] } } });
        return ask(posted(listed, { pcr7: 8 }));
      },
    ],
  },
  'take the name of a node with a machine that is listed too': {
    codes: ['TofuNodeTaken'],
    tries: [
      async () => {
        const { allow, join, listed } = await scene();
        const other = machine();
        await allow(other);
        await join(listed);
        return join(other);
      },
    ],
  },
};

describeThreats('### With a TPM', threats);

test('the machine itself joins, renews and is signed for', async () => {
  const { ask, join, listed } = await scene(undefined, { pcrs: { values: { 7: ['07'.repeat(32)] } } });
  const joined = await join(listed);
  expect(joined.signed).toBe('issued');
  expect(joined.annotations).toMatchObject({ 'cluster-x-k8s-io/tpm-endorsement-key': b64(listed.ek.spki) });
  expect((await ask(posted(listed, { quote: { clock: 6_000n } }))).signed).toBe('issued');
});
