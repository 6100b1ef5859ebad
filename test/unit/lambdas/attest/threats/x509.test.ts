/** SECURITY.md, "With a certificate of your PKI", row by row, through the real handlers and the shipped provider. */
import 'reflect-metadata';
import type { KeyObject } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { bindingDigest } from '../../../../../core/attestation/evidence/binding-digest.ts';
import { evidenceLabels } from '../../../../../core/attestation/evidence/evidence.ts';
import * as world from '../../../../corpus/attestation/x509/machine.ts';
import { openSite, requestFor } from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, CertificateSigningRequest } from '../../../../harness/attestation/attested-site.ts';
import { extKeyUsage, general, keyOf, purposes, subjectAltName } from '../../../../harness/x509/certificate-writer.ts';
import * as der from '../../../../harness/x509/der-writer.ts';
import { makeRequest, newKey, pemBlock } from '../../../../harness/x509/requests.ts';
import type { TestKey } from '../../../../harness/x509/requests.ts';
import { askBoth, describeThreats } from './rows.ts';
import type { Asked, Threat } from './rows.ts';

const signer = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-x509';
const audience = 'edge/site-1/prod';
const now = Date.now();
const life = { notBefore: now - 3_600_000, notAfter: now + 3_600_000 };

const root = world.root(life);
const intermediate = world.intermediate(life);
const named = (host: string) => subjectAltName(general.uri(`spiffe://prod.example/node/${host}`));
const leaf = (change: world.Change = {}): Buffer => world.leaf({ ...life, ...change });

interface Sent {
  readonly node?: string;
  readonly chain?: readonly Buffer[];
  /** With which the proof is signed. */
  readonly key?: KeyObject;
  readonly requestKey?: TestKey;
  /** Whose binding digest is signed, if it is not the one of this request. */
  readonly boundTo?: TestKey;
  readonly signedAt?: number;
  readonly uri?: string;
}

function posted(sent: Sent = {}): CertificateSigningRequest {
  const { node = 'worker-1', requestKey = newKey('P-256'), boundTo = requestKey, uri = world.spiffeId } = sent;
  const { chain = [leaf(), intermediate], key = keyOf('machine') } = sent;
  const nonce = world.nonceAt(sent.signedAt ?? now);
  const binding = bindingDigest({ audience, signerName: signer, nodeName: node, nonce, spki: boundTo.spki });
  const content = Buffer.concat([Buffer.from('csr-attest/x509/v1\0'), Buffer.from(binding, 'hex')]);
  const evidence = {
    v: 1,
    chain: chain.map((one) => one.toString('base64')),
    signature: world.signatureOver(content, key).toString('base64'),
    algorithm: world.algorithmOf(key).label,
    nonce,
  };
  const csr = makeRequest({
    key: requestKey,
    subject: { O: ['system:nodes'], CN: `system:node:${node}` },
    extensions: [{ oid: '1.3.6.1.4.1.11129.2.1.21', value: der.utf8(`x509:///${uri}`) }],
  });
  const blocks = [
    pemBlock(evidenceLabels.provider, Buffer.from('x509/v1')),
    pemBlock(evidenceLabels.data, Buffer.from(JSON.stringify(evidence))),
  ];
  return requestFor({ node, signerName: signer, request: csr.pem + blocks.join('') });
}

const opened: AttestedSite[] = [];
afterEach(() => {
  for (const site of opened.splice(0)) site.close();
});

async function scene(): Promise<(object: CertificateSigningRequest) => Promise<Asked>> {
  const refuse = () => Promise.reject(new Error('no AWS'));
  const rules = [{ root: 'prod', uri: 'spiffe://prod.example/node/{node}', nodeName: ['{node}'] }];
  const x509 = { roots: { prod: [world.pem(root)] }, rules };
  const site = await openSite({
    clusters: {
      prod: { profiles: { [signer]: {} }, approval: { [signer]: 'approve' }, attestation: { audience, x509 } },
    },
    aws: { sts: refuse, ec2: { describeInstance: refuse }, regionCertificates: new Map() },
    now: () => now,
  });
  opened.push(site);
  return (object) => askBoth(site, object);
}

const tried = (sent: Sent) => async () => (await scene())(posted(sent));
const [own, foreign] = [keyOf('attacker'), keyOf('attacker CA')];

const threats: Readonly<Record<string, Threat>> = {
  'have certificates of another PKI, with the names of this one': {
    codes: ['AttestationInvalid'],
    tries: [
      tried({ chain: [leaf({ signer: foreign }), world.intermediate({ ...life, key: foreign, signer: foreign })] }),
      tried({
        chain: [
          leaf({ signer: foreign }),
          world.intermediate({ ...life, key: foreign, signer: foreign }),
          world.root({ ...life, key: foreign, signer: foreign }),
        ],
      }),
    ],
  },
  'issue certificates with the certificate of a machine, which is no CA': {
    codes: ['AttestationInvalid'],
    tries: [tried({ key: own, chain: [leaf({ key: own, signer: keyOf('machine') }), leaf(), intermediate] })],
  },
  'get a certificate of the CA that is for no machine, or for another purpose': {
    codes: ['IdentityNotAllowed', 'AttestationInvalid'],
    tries: [
      tried({
        chain: [
          leaf({
            extensions: world.leafExtensionsBut({
              subjectAltName: subjectAltName(general.uri('spiffe://prod.example/laptop/1')),
            }),
          }),
          intermediate,
        ],
      }),
      tried({
        chain: [
          leaf({ extensions: world.leafExtensionsBut({ extKeyUsage: extKeyUsage(purposes.serverAuth) }) }),
          intermediate,
        ],
      }),
    ],
  },
  'show the certificate of a node, which is public, without its key': {
    codes: ['AttestationInvalid'],
    tries: [tried({ key: own })],
  },
  'copy a proof from a request, or keep one for later': {
    codes: ['AttestationInvalid'],
    tries: [tried({ boundTo: newKey('P-256') }), tried({ signedAt: now - 5 * 60_000 })],
  },
  'take the name of another node with the certificate of a machine': {
    codes: ['IdentityNotAllowed'],
    tries: [tried({ node: 'control-plane-1' })],
  },
  'use a certificate that has expired': {
    codes: ['AttestationInvalid'],
    tries: [tried({ chain: [leaf({ notAfter: now - 1_000 }), intermediate] })],
  },
  'copy the key file of a machine that has joined, and hold a bootstrap token': {
    codes: ['TofuReuse'],
    tries: [
      async () => {
        const ask = await scene();
        await ask(posted());
        return ask(posted());
      },
    ],
  },
  'do so before the machine joins': { codes: ['issued'], tries: [tried({})] },
};

describeThreats('### With a certificate of your PKI', threats);

test('another machine of the PKI joins beside it', async () => {
  const ask = await scene();
  const key = keyOf('second machine');
  const second = leaf({ key, extensions: world.leafExtensionsBut({ subjectAltName: named('worker-2') }) });
  expect((await ask(posted())).signed).toBe('issued');
  const uri = 'spiffe://prod.example/node/worker-2';
  expect((await ask(posted({ node: 'worker-2', key, chain: [second, intermediate], uri }))).signed).toBe('issued');
});
