/** The blocks of gke-exec-auth-plugin, in a profile without attestation: every check that needs neither Google nor a configuration. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { decodeFor } from '../../../../../core/read-and-check-request.ts';
import type { BlockPolicy } from '../../../../../core/read-and-check-request.ts';
import { readVmEvidence } from '../../../../../core/attestation/gce-vtpm/blocks.ts';
import { signingKeyIn } from '../../../../../core/attestation/gce-vtpm/signing-key.ts';
import { decodeRequest } from '../../../../../core/x509/certificate-request.ts';
import { requests, realVm, signingKey } from '../../../../corpus/attestation/gce-vtpm/real-requests.ts';
import { blockCases } from '../../../../corpus/attestation/gce-vtpm/block-cases.ts';
import * as world from '../../../../corpus/attestation/gce-vtpm/vm.ts';
import { pemBlock } from '../../../../harness/x509/requests.ts';

const policies = {
  'without attestation': { requestBlocks: 'gce-vtpm' },
  'provider gce-vtpm': {
    attestation: { providers: ['gce-vtpm'], required: true, mode: 'enforce', subjectAccessReview: false },
  },
  'another provider': {
    attestation: { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false },
  },
  'nothing of it': {},
} as const satisfies Readonly<Record<string, BlockPolicy>>;

function read(text: string, policy: BlockPolicy = policies['without attestation']): string {
  const decoded = decodeFor(policy, Buffer.from(text));
  return decoded.ok ? 'accepted' : decoded.problem.map(({ code, message }) => `${code}: ${message}`).join('; ');
}

describe('requests of the real plugin', () => {
  test.each(Object.entries(requests))('%s', (_, { text, clock }) => {
    expect(read(text)).toBe('accepted');
    const decoded = decodeRequest(Buffer.from(text), 'gce-vtpm');
    if (!decoded.ok) throw new Error('refused');
    const evidence = readVmEvidence(decoded.value);
    if (!evidence.ok) throw new Error(evidence.problem.message);
    const { vm, clock: read_, certificate, isSignedBy } = evidence.value;
    expect(vm).toEqual(realVm);
    expect(read_).toEqual({ clock: Number(clock), resetCount: 1, safe: true });
    const key = signingKeyIn(signingKey);
    if (key === undefined) throw new Error('no key');
    expect([isSignedBy(key), certificate?.key.equals(key)]).toEqual([true, true]);
  });

  test('one has a key whose name depends on the form of its coordinates', () => {
    const { text, certifiedName: name } = requests['leading-zero-x'];
    const decoded = decodeRequest(Buffer.from(text), 'gce-vtpm');
    if (!decoded.ok) throw new Error('refused');
    const { spki } = decoded.value.publicKey;
    expect(world.certifiedName(spki, 'stripped').toString('hex')).toBe(name);
    expect(world.certifiedName(spki, 'padded').toString('hex')).not.toBe(name);
  });
});

describe('what the blocks hold', () => {
  test.for(blockCases.map((one) => [one.name, one] as const))('%s', ([, { text, expect: wanted }]) => {
    const said = read(text());
    if (wanted === 'accepted') expect(said).toBe('accepted');
    else expect(said).toMatch(new RegExp(`^${wanted[0]}: .*${wanted[1]}`));
  });

  test('names are told apart', () => {
    expect(new Set(blockCases.map(({ name }) => name)).size).toBe(blockCases.length);
  });
});

describe('where they are accepted', () => {
  const real = requests['with-aik-cert'].text;
  const [request = ''] = /^-----BEGIN[^]*?END CERTIFICATE REQUEST-----\n/.exec(real) ?? [];
  const provider = pemBlock('KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.from('aws/v2'));
  const data = pemBlock('KUBELET AUTHENTICATOR ATTESTATION DATA', Buffer.from('{}'));
  /** Seed 004's example of its own evidence. */
  const example = pemBlock(
    'ATTESTATION DATA',
    Buffer.from('Knowing me Alan Partridge, knowing you Kubernetes cluster, ahha!'),
  );
  const texts = {
    'the blocks of the plugin': real,
    'no blocks': request,
    'the blocks of kubelet-authenticator': request + provider + data,
    'blocks of both': real + provider + data,
    'blocks of both, the other order': request + provider + data + real.slice(request.length),
    'the example label of the proposal': request + example,
  };
  type Answers = Readonly<Record<keyof typeof texts, 'accepted' | 'RequestMalformed'>>;
  const table: Readonly<Record<keyof typeof policies, Answers>> = {
    'without attestation': {
      'the blocks of the plugin': 'accepted',
      'no blocks': 'accepted',
      'the blocks of kubelet-authenticator': 'RequestMalformed',
      'blocks of both': 'RequestMalformed',
      'blocks of both, the other order': 'RequestMalformed',
      'the example label of the proposal': 'RequestMalformed',
    },
    'provider gce-vtpm': {
      'the blocks of the plugin': 'accepted',
      'no blocks': 'accepted',
      // Its evidence is of another version, of which the answer tells the node.
      'the blocks of kubelet-authenticator': 'accepted',
      'blocks of both': 'RequestMalformed',
      'blocks of both, the other order': 'RequestMalformed',
      // Refused by the provider, which reads what the blocks hold.
      'the example label of the proposal': 'accepted',
    },
    'another provider': {
      'the blocks of the plugin': 'RequestMalformed',
      'no blocks': 'accepted',
      'the blocks of kubelet-authenticator': 'accepted',
      'blocks of both': 'RequestMalformed',
      'blocks of both, the other order': 'RequestMalformed',
      'the example label of the proposal': 'RequestMalformed',
    },
    'nothing of it': {
      'the blocks of the plugin': 'RequestMalformed',
      'no blocks': 'accepted',
      'the blocks of kubelet-authenticator': 'accepted',
      'blocks of both': 'RequestMalformed',
      'blocks of both, the other order': 'RequestMalformed',
      'the example label of the proposal': 'RequestMalformed',
    },
  };
  test.each(Object.entries(table))('%s', (policy, answers) => {
    const said = Object.entries(texts).map(([name, text]) => [
      name,
      read(text, policies[policy as keyof typeof policies]).split(':')[0],
    ]);
    expect(Object.fromEntries(said)).toEqual(answers);
  });

  test('a profile of the plugin names the labels that it accepts', () => {
    expect(read(request + example.replaceAll('ATTESTATION DATA', 'NOTES'))).toBe(
      'RequestMalformed: spec.request has a block of another kind than CERTIFICATE REQUEST, ATTESTATION DATA, ATTESTATION SIGNATURE, VM IDENTITY, ATTESTATION CERTIFICATE',
    );
  });
});

test('a signing key is RSA of 2048 bits or more', () => {
  const pem = (type: 'rsa-pss' | 'ec') =>
    (type === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa-pss', { modulusLength: 2048 })
    ).publicKey
      .export({ type: 'spki', format: 'pem' })
      .toString();
  const fits = (text: string) => signingKeyIn(text) !== undefined;
  expect(fits(world.publicPem(world.keys.vm))).toBe(true);
  expect([world.publicPem(world.keys.short), pem('ec'), pem('rsa-pss'), '', 'x'].map(fits)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
});
