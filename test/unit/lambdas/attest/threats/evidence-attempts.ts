/** Attempts without evidence, with another machine's, or with forged evidence. */
import { account, audience, prove, requestFor, signers } from '../../../../harness/attestation/attested-site.ts';
import type { Proved } from '../../../../harness/attestation/attested-site.ts';
import type { FakeInstance } from '../../../../harness/fake-aws/machine/instance.ts';
import { makeNodeRequest, withEvidence } from '../../../../harness/fake-aws/machine/node-evidence.ts';
import { presign, stsToken } from '../../../../harness/fake-aws/protocol/presign.ts';
import { signIdentityDocument } from '../../../../harness/fake-aws/machine/region-ca.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { altered, captured, invalid, notAllowed, refused, register, serving } from './attempt.ts';
import type { Attempt, Attempts } from './attempt.ts';

const notOverThis = /not a signature over this request/;
const otherInstance = /of another instance than the evidence says/;
/** Of a node that makes evidence as nodes did before aws/v2. */
const v1: Proved = { evidence: { version: 'aws/v1' } };
const notForSts = /is not for https:\/\/sts\.eu-central-1\.amazonaws\.com\/\?/;

/** The token's URL, as an attacker would rather have it. */
function steered(says: RegExp, edit: (url: string) => string): Attempt {
  return invalid(says, ({ platform }) => {
    const evidence = prove(platform, platform.launch('worker-1'));
    return altered(evidence, { sts: stsToken(edit(evidence.presignedUrl)) });
  });
}

function malformed(edit: (request: string) => string): Attempt {
  return refused('RequestMalformed', ({ platform }) =>
    requestFor({ request: edit(prove(platform, platform.launch('worker-1')).request) }),
  );
}

/** With another provider's word for it. */
function provided(version: string, data = '{"v":1}'): string {
  return withEvidence(makeNodeRequest('worker-1', newKey('P-256')).pem, version, data);
}

export const evidenceAttempts = {
  'hold a bootstrap token and nothing else': {
    'for a new node': refused('AttestationMissing', () => requestFor()),
    'for a control-plane node': refused('AttestationMissing', () => requestFor({ node: 'cp-1' })),
    'from the signer for evidence': refused('AttestationMissing', () => requestFor({ signerName: signers.awsClient })),
    'a serving certificate, of a node without a record': refused('AttestationMissing', () =>
      requestFor({ signerName: signers.serving, by: 'node', csr: { sans: { dns: ['worker-1'] } } }),
    ),
    'a serving certificate where evidence is demanded': refused('AttestationMissing', (scene) =>
      serving(scene, { ip: ['10.0.0.7'] }, { signerName: signers.awsServing }),
    ),
  },
  "read requests, or the relay's traffic: tokens, signatures, documents of older nodes": {
    'with a key of its own': invalid(notOverThis, (scene) => captured(scene, {})),
    'with a key of its own, for a proof with a nonce': invalid(notOverThis, (scene) =>
      captured(scene, {}, { evidence: { nonce: 'one' } }),
    ),
    'with another nonce beside it': invalid(notOverThis, ({ platform }) =>
      altered(prove(platform, platform.launch('worker-1'), { evidence: { nonce: 'one' } }), { nonce: 'two' }),
    ),
    'the same key in other bytes: its proof is spent': invalid(/used before, by another request/, async (scene) => {
      const worker = scene.platform.launch('worker-1');
      const { request, key, version, data } = prove(scene.platform, worker);
      await scene.site.attest(requestFor({ request }));
      // Signed anew by who has the key, and nothing else: an ECDSA signature is never the same twice.
      const { csr } = prove(scene.platform, worker, { key });
      return requestFor({ request: withEvidence(csr.pem, version, JSON.stringify(data)) });
    }),
    'six minutes later': invalid(/signed more than 5 minutes ago/, ({ platform, proved }) =>
      proved(platform.launch('worker-1'), { evidence: { at: platform.now() - 360_000 } }),
    ),
    'ahead of its time': invalid(/signed in the future/, ({ platform, proved }) =>
      proved(platform.launch('worker-1'), { evidence: { at: platform.now() + 600_000 } }),
    ),
    "for the node's own key, without having it": refused('SignatureInvalid', (scene) => {
      const key = newKey('P-256');
      return captured(scene, { csr: { spki: key.spki } }, { key });
    }),
  },
  "replay another cluster's, signer's or node's evidence, or an EKS token": {
    "another node's": invalid(notOverThis, (scene) => {
      const key = newKey('P-256');
      return captured(scene, { node: 'worker-2', key }, { key });
    }),
    "another cluster's, here": invalid(notOverThis, ({ platform, proved }) =>
      proved(platform.launch('worker-1'), { evidence: { clusterName: 'other', audience: audience('other') } }),
    ),
    "this one's, in another cluster": invalid(
      notOverThis,
      ({ platform, proved }) => proved(platform.launch('worker-1')),
      {
        cluster: 'other',
      },
    ),
    'of a cluster of the same name elsewhere': invalid(notOverThis, ({ platform, proved }) =>
      proved(platform.launch('worker-1'), { evidence: { audience: `${account}/us-east-1/prod` } }),
    ),
    "another signer's": invalid(notOverThis, ({ platform, proved }) =>
      proved(platform.launch('worker-1'), { evidence: { signerName: signers.awsClient } }),
    ),
    'of a client certificate, for a serving one': invalid(notOverThis, async (scene) => {
      const worker = scene.platform.launch('worker-1', { privateIp: '10.0.0.7' });
      await register(scene, worker);
      const csr = { sans: { ip: ['10.0.0.7'] } };
      const evidence = { signerName: signers.awsClient };
      return scene.proved(worker, { signerName: signers.awsServing, by: 'node', csr, evidence });
    }),
    'an EKS token for a cluster of this name': invalid(notOverThis, ({ platform, proved }) =>
      proved(platform.launch('worker-1'), { evidence: { presign: { id: 'prod' } } }),
    ),
    'a token that is bound to nothing': invalid(/X-Amz-SignedHeaders that is not as it must be/, ({ platform }) => {
      const worker = platform.launch('worker-1');
      const credential = platform.aws.identityCredential(worker.instanceId);
      const url = presign({ credential, region: worker.region, at: platform.now() });
      return altered(prove(platform, worker), { sts: stsToken(url) });
    }),
  },
  'send a genuine signed document and a forged one beside it': {
    'as a field of the evidence': invalid(/has an unknown key/, ({ platform }) =>
      altered(prove(platform, platform.launch('worker-1'), v1), { document: '{"instanceId":"i-0123456789abcdef0"}' }),
    ),
    'signed by a region that was not asked': invalid(/key of no region configured/, ({ platform }) => {
      const worker = platform.launch('worker-1');
      const document = platform.aws.identityDocument(worker.instanceId);
      return altered(prove(platform, worker, v1), { rsa2048: signIdentityDocument(document, 'us-east-1') });
    }),
    'of another instance than the token': invalid(otherInstance, ({ platform }) => {
      const [mine, theirs] = [platform.launch('worker-1'), platform.launch('worker-1')];
      return altered(prove(platform, mine, v1), { rsa2048: platform.aws.rsa2048(theirs.instanceId) });
    }),
    'beside claims': invalid(/has an unknown key/, ({ platform }) => {
      const worker = platform.launch('worker-1');
      return altered(prove(platform, worker), { rsa2048: platform.aws.rsa2048(worker.instanceId) });
    }),
  },
  'claim to be another instance': {
    'with a token of their own instance': invalid(otherInstance, ({ platform }) => {
      const [mine, theirs] = [platform.launch('worker-1'), platform.launch('worker-1')];
      return altered(prove(platform, mine), { instance: theirs.instanceId });
    }),
    'without credentials of any instance': invalid(notOverThis, ({ platform }) => {
      const worker = platform.launch('worker-1');
      const signedBy = { ...platform.aws.identityCredential(worker.instanceId), secretAccessKey: 'guessed' };
      return altered(prove(platform, worker, { evidence: { signedBy } }), {});
    }),
    'of another account, with a token of the listed one': notAllowed(/of account 999988887777 may not/, (scene) =>
      altered(prove(scene.platform, scene.platform.launch('worker-1')), { account: '999988887777' }),
    ),
    'by a pattern': invalid(/names no instance/, ({ platform }) =>
      altered(prove(platform, platform.launch('worker-1')), { instance: 'i-*' }),
    ),
    'in a region of another partition': notAllowed(/in region cn-north-1 may not join/, ({ platform }) =>
      altered(prove(platform, platform.launch('worker-1')), { region: 'cn-north-1' }),
    ),
  },
  'own another AWS account': {
    'with instances, tags and names as here': notAllowed(/of account 999988887777 may not join/, (scene) =>
      scene.proved(stranger(scene)),
    ),
    'and have a token of the one that is listed': notAllowed(/of account 999988887777 may not join/, (scene) => {
      const listed = scene.platform.launch('worker-1');
      const signedBy = scene.platform.aws.identityCredential(listed.instanceId);
      return scene.proved(stranger(scene), { evidence: { signedBy } });
    }),
    'and claim an instance of the one that is listed': invalid(/of another account than the evidence says/, (scene) => {
      const signedBy = scene.platform.aws.identityCredential(stranger(scene).instanceId);
      return scene.proved(scene.platform.launch('worker-1'), { evidence: { signedBy } });
    }),
  },
  'steer the STS call (host, action, redirect, doubled or cased parameters)': {
    'another host': steered(notForSts, (url) => url.replace(/\/\/[^/]+/, '//sts.attacker.example')),
    'another host behind the true one': steered(notForSts, (url) =>
      url.replace('.amazonaws.com', '.amazonaws.com.attacker.example'),
    ),
    "another region's host": steered(notForSts, (url) => url.replace('sts.eu-central-1.', 'sts.us-east-1.')),
    'in the clear': steered(notForSts, (url) => url.replace('https:', 'http:')),
    'another path': steered(notForSts, (url) => url.replace('.com/?', '.com/evil?')),
    'another action': steered(/Action that is not as it must be/, (url) =>
      url.replace('GetCallerIdentity', 'GetSessionToken'),
    ),
    'two actions': steered(/the parameter Action twice/, (url) => `${url}&Action=GetSessionToken`),
    'an action in another case': steered(/of no known name/, (url) => `${url}&action=GetSessionToken`),
    'a credential in another case (CVE-2022-2385)': steered(
      /of no known name/,
      (url) => `${url}&x-amz-credential=AKIAATTACKER`,
    ),
    'a parameter whose value is reflected': steered(/of no known name/, (url) => `${url}&WebIdentityToken=%7B%7D`),
    'answered by a redirect': invalid(/answered by STS with status 302/, ({ platform, proved }) => {
      const headers = { location: 'https://sts.attacker.example/' };
      platform.sts.inject({ when: 'before', answer: { status: 302, contentType: 'text/html', body: '', headers } });
      return proved(platform.launch('worker-1'));
    }),
    "answered by another action's JSON": invalid(/something other than GetCallerIdentity/, ({ platform, proved }) => {
      const body = '{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Arn":"x"},"AttackerText":"x"}}';
      platform.sts.inject({ when: 'before', answer: { status: 200, contentType: 'application/json', body } });
      return proved(platform.launch('worker-1'));
    }),
  },
  'choose the session name of a role it may assume': {
    'of a node role': invalid(/not signed by the instance identity role/, ({ platform, proved }) => {
      const worker = platform.launch('worker-1');
      const role = platform.aws.createRole({ arn: `arn:aws:iam::${account}:role/node` });
      return proved(worker, { evidence: { signedBy: platform.aws.session(role, worker.instanceId) } });
    }),
    'of a role that is called as the identity role is': invalid(/not signed by the instance identity role/, (scene) => {
      const worker = scene.platform.launch('worker-1');
      const role = scene.platform.aws.createRole({ arn: `arn:aws:iam::${account}:role/aws:ec2-instance` });
      return scene.proved(worker, { evidence: { signedBy: scene.platform.aws.session(role, worker.instanceId) } });
    }),
    'or sign with a key that never ends': invalid(
      /X-Amz-Credential that is not as it must be/,
      ({ platform, proved }) =>
        proved(platform.launch('worker-1'), { evidence: { signedBy: platform.aws.createUser(account, 'eve') } }),
    ),
  },
  'send evidence in an unknown form': {
    'a later version': refused('AttestationVersion', ({ platform, proved }) =>
      proved(platform.launch('worker-1'), { evidence: { version: 'aws/v3' } }),
    ),
    'of a provider that is not configured': refused('AttestationVersion', ({ platform, proved }) =>
      proved(platform.launch('worker-1'), { evidence: { version: 'gce/v1' } }),
    ),
    'of the insecure provider': refused('AttestationVersion', () => requestFor({ request: provided('insecure/v1') })),
    'with the fields of another version': invalid(/has an unknown key/, ({ platform, proved }) => {
      const worker = platform.launch('worker-1');
      return proved(worker, { evidence: { data: { rsa2048: platform.aws.rsa2048(worker.instanceId) } } });
    }),
    "of the tests' own provider": refused('AttestationVersion', () => requestFor({ request: provided('null/v1') })),
    'with a field more': invalid(/has an unknown key/, ({ platform }) =>
      altered(prove(platform, platform.launch('worker-1')), { more: 1 }),
    ),
    'that is no JSON': invalid(/is not JSON/, () => requestFor({ request: provided('aws/v2', 'account=') })),
  },
  'send two requests, blocks out of order or twice, headers, or bytes around them': {
    'a second request behind the first': malformed((request) => request + makeNodeRequest('cp-1', newKey('P-256')).pem),
    'the evidence first': malformed((request) => {
      const [csr = '', ...blocks] = request.split(/(?=-----BEGIN KUBELET)/);
      return blocks.join('') + csr;
    }),
    'the data before the provider': malformed((request) => {
      const [csr = '', ...blocks] = request.split(/(?=-----BEGIN KUBELET)/);
      return csr + blocks.toReversed().join('');
    }),
    'the data twice': malformed((request) => request + request.slice(request.lastIndexOf('-----BEGIN'))),
    'text before it': malformed((request) => `# a request\n${request}`),
    'text between the blocks': malformed((request) => request.replace(/\n(?=-----BEGIN KUBELET)/, '\nand\n')),
    'PEM headers': malformed((request) =>
      request.replace('REQUEST-----\n', 'REQUEST-----\nProc-Type: 4,ENCRYPTED\n\n'),
    ),
  },
} satisfies Attempts;

function stranger({ platform }: Parameters<Attempt['posted']>[0]): FakeInstance {
  return platform.launch('worker-1', { account: '999988887777' });
}
