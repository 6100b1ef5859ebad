/**
 * What a stranger can do with the evidence in another node's request. Every node and bootstrap token may list requests, so
 * evidence must be of no use: not here for another key, node, signer, cluster or audience, and not to any other system
 * (docs/attestation/aws.md, What evidence is worth to others). Each verifier is also shown what it does accept.
 */
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { pinCertificate } from '../../../../../core/attestation/aws/cms.ts';
import {
  account,
  audience,
  openSite,
  prove,
  region,
  requestFor,
  signers,
  startAwsPlatform,
} from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, AwsPlatform, Proved } from '../../../../harness/attestation/attested-site.ts';
import { makeNodeRequest, withEvidence } from '../../../../harness/fake-aws/machine/node-evidence.ts';
import {
  eksToken,
  identityDocument,
  kopsBootstrap,
  mongodbAws,
  sha256,
  teleportIam,
  vaultIam,
} from '../../../../harness/fake-aws/protocol/other-verifiers.ts';
import type { Believed, IdentityRequest } from '../../../../harness/fake-aws/protocol/other-verifiers.ts';
import { presign, urlOfToken } from '../../../../harness/fake-aws/protocol/presign.ts';
import { sendTo } from '../../../../harness/fake-aws/sts-endpoint.ts';
import type { Credential } from '../../../../harness/fake-aws/world.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { clusters } from '../threats/attempt.ts';

let platform: AwsPlatform;
const open: AttestedSite[] = [];
beforeAll(async () => {
  platform = await startAwsPlatform();
});
afterEach(() => {
  for (const site of open.splice(0)) site.close();
});
afterAll(() => platform.close());

/** What stands in a request, for everyone who may read it. */
interface ReadEvidence {
  readonly version: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Every text in it, what is encoded in another text among them. */
  readonly texts: readonly string[];
  readonly url: string;
  /** The header that was signed. It can be computed from the request: nothing in it is secret. */
  readonly id: string;
}

function readFrom(asked: Proved = {}): ReadEvidence {
  const worker = platform.launch('worker-1', { roleName: 'node' });
  const { request, binding } = prove(platform, worker, asked);
  const blocks = [...request.matchAll(/-----BEGIN [A-Z ]+-----\n([^-]+)-----END/g)].map(([, text = '']) =>
    Buffer.from(text, 'base64').toString('latin1'),
  );
  const data = JSON.parse(blocks[2] ?? '') as Record<string, unknown>;
  const url = urlOfToken(String(data['sts']));
  const texts = [...blocks, ...Object.values(data).map(String), url, ...new URL(url).searchParams.values()];
  return { version: blocks[1] ?? '', data, texts, url, id: `csr-attest/v1/prod/${binding}` };
}

const worker = (): string => `arn:aws:sts::${account}:assumed-role/aws:ec2-instance/${lastLaunched()}`;
const lastLaunched = (): string => [...platform.aws.instances.keys()].at(-1) ?? '';

describe('evidence that a reader of the request copied', () => {
  test('finding 7: contains no signed document', () => {
    const { version, data, texts } = readFrom({ evidence: { nonce: 'n' } });
    expect([version, Object.keys(data)]).toEqual(['aws/v2', ['v', 'account', 'region', 'instance', 'sts', 'nonce']]);
    expect(document(texts)).toBeUndefined();
    // SignedData (1.2.840.113549.1.7.2), however often it is encoded.
    const signedData = Buffer.from('06092a864886f70d010702', 'hex').toString('latin1');
    const decoded = texts.flatMap((text) => [text, Buffer.from(text, 'base64').toString('latin1')]);
    expect(decoded.filter((text) => text.includes(signedData))).toEqual([]);
  });

  test('finding 7: that of aws/v1 does, and a service that accepts documents believes it', () => {
    const { texts } = readFrom({ evidence: { version: 'aws/v1' } });
    expect(document(texts)).toContain(lastLaunched());
  });

  const document = (texts: readonly string[]): string | undefined => {
    const certificates = [...platform.aws.regionCertificates(region)].flatMap(([name, ders]) =>
      ders.map((der) => pinCertificate(name, der)),
    );
    return identityDocument(certificates, platform.now())(texts);
  };

  test.for<[string, Proved & { readonly cluster?: string }]>([
    ['key', {}],
    ['node', { node: 'worker-2' }],
    ['signer', { signerName: signers.awsClient }],
    ['cluster', { cluster: 'other' }],
  ])('finding 7: is refused here for another %s', async ([, { cluster = 'prod', ...asked }]) => {
    const site = await openSite({ clusters, aws: platform.ports, now: platform.now });
    open.push(site);
    const { version, data } = readFrom();
    const { pem } = makeNodeRequest(asked.node ?? 'worker-1', newKey('P-256'));
    const object = requestFor({ ...asked, request: withEvidence(pem, version, JSON.stringify(data)) });
    const refused = {
      said: 'AttestationInvalid',
      message: expect.stringContaining('not a signature over this request') as string,
    };
    expect(await site.attest(object, { cluster })).toMatchObject(refused);
    expect(await site.sign(object, { cluster })).toMatchObject({ said: 'AttestationInvalid' });
  });

  test('finding 7: is refused here for another audience of the same cluster name', async () => {
    const elsewhere = {
      ...clusters['prod'],
      attestation: { ...(clusters['prod']?.['attestation'] as object), audience: 'x' },
    };
    const site = await openSite({ clusters: { prod: elsewhere }, aws: platform.ports, now: platform.now });
    open.push(site);
    const key = newKey('P-256');
    const { request } = prove(platform, platform.launch('worker-1'), { key, evidence: { audience: audience('prod') } });
    expect(await site.attest(requestFor({ request }))).toMatchObject({ said: 'AttestationInvalid' });
  });
});

/** A request as that system's own client makes it, with the role of an instance profile. */
function presigned(headers: Readonly<Record<string, string>>): IdentityRequest {
  const { 'x-k8s-aws-id': id, ...others } = headers;
  const more = id === undefined ? {} : { id };
  const url = presign({ credential: ownCredential(), region, at: platform.now(), headers: others, ...more });
  return { method: 'GET', url, headers };
}

/** Signed in the Authorization header, the question in the body. */
async function posted(header: Readonly<Record<string, string>>): Promise<IdentityRequest> {
  const { accessKeyId, secretAccessKey, sessionToken = '' } = ownCredential();
  const credentials = { accessKeyId, secretAccessKey, sessionToken };
  const [hostname, body] = [`sts.${region}.amazonaws.com`, 'Action=GetCallerIdentity&Version=2011-06-15'];
  const type = 'application/x-www-form-urlencoded; charset=utf-8';
  const { headers } = await new SignatureV4({ service: 'sts', region, credentials, sha256: Sha256 }).sign(
    {
      method: 'POST',
      protocol: 'https:',
      hostname,
      path: '/',
      headers: { host: hostname, 'content-type': type, ...header },
      body,
    },
    { signingDate: new Date(platform.now()) },
  );
  return { method: 'POST', url: `https://${hostname}/`, headers, body };
}

function ownCredential(): Credential {
  return platform.aws.profileCredential(platform.launch('worker-1', { roleName: 'node' }).instanceId);
}

/** Each system, what its own client sends it, and what a thief can make of evidence for it. */
const systems: Readonly<
  Record<
    string,
    {
      readonly system: () => (request: IdentityRequest) => Promise<Believed>;
      readonly own: () => IdentityRequest | Promise<IdentityRequest>;
      readonly stolen: (read: ReadEvidence) => IdentityRequest;
      readonly refused: RegExp;
    }
  >
> = {
  'Amazon EKS, aws-iam-authenticator': {
    system: () => eksToken(platform.sts, 'prod'),
    own: () => presigned({ 'x-k8s-aws-id': 'prod' }),
    stolen: ({ url }) => ({ method: 'GET', url, headers: {} }),
    refused: /STS answers 403/,
  },
  'Vault iam, with iam_server_id_header_value': {
    system: () => vaultIam(platform.sts, { serverId: 'vault.example.com' }),
    own: () => presigned({ 'x-vault-aws-iam-server-id': 'vault.example.com' }),
    stolen: withHeader('x-vault-aws-iam-server-id', 'vault.example.com'),
    refused: /is not signed/,
  },
  // STS confirms the signature. The ARN of the instance identity role holds one more colon than such systems read.
  'Vault iam and Consul aws-iam, without a server id': {
    system: () => vaultIam(platform.sts, {}),
    own: () => presigned({}),
    stolen: ({ url, id }) => ({ method: 'GET', url, headers: { 'x-k8s-aws-id': id } }),
    refused: /the ARN has 7 parts/,
  },
  'Teleport iam': {
    system: () => teleportIam(platform.sts, 'challenge'),
    own: () => posted({ 'x-teleport-challenge': 'challenge' }),
    stolen: withHeader('x-teleport-challenge', 'challenge', 'POST'),
    refused: /is not signed/,
  },
  'kOps nodeup': {
    system: () => kopsBootstrap(platform.sts, '{"instanceGroupName":"nodes"}'),
    own: () => presigned({ 'x-kops-request-sha': sha256('{"instanceGroupName":"nodes"}') }),
    stolen: withHeader('x-kops-request-sha', sha256('{"instanceGroupName":"nodes"}')),
    refused: /is not signed/,
  },
  'MongoDB MONGODB-AWS': {
    system: () => mongodbAws(platform.sts, 'nonce'),
    own: () => posted({ 'x-mongodb-server-nonce': 'nonce' }),
    stolen: withHeader('x-mongodb-server-nonce', 'nonce', 'POST'),
    refused: /is not signed/,
  },
};

function withHeader(name: string, value: string, method: 'GET' | 'POST' = 'GET') {
  return ({ url, id }: ReadEvidence): IdentityRequest => ({
    method,
    url,
    headers: { 'x-k8s-aws-id': id, [name]: value },
  });
}

describe.each(Object.entries(systems))('%s', (_, { system, own, stolen, refused }) => {
  test('believes what its own client signs', async () => {
    expect(await system()(await own())).toEqual({ arn: expect.stringContaining(':assumed-role/node/i-') as string });
  });

  test('finding 7: refuses what stands in another node’s request', async () => {
    expect(await system()(stolen(readFrom()))).toEqual({ refused: expect.stringMatching(refused) as string });
  });
});

describe('AWS itself', () => {
  /** The presigned request, its parameters or host changed. */
  async function sent(
    url: string,
    id: string,
    port: number,
  ): Promise<{ readonly status: number; readonly body: string }> {
    const { host, pathname, search } = new URL(url);
    const headers = { 'x-k8s-aws-id': id, accept: 'application/json' };
    return sendTo(port, { method: 'GET', host, path: pathname + search, headers });
  }

  test('finding 7: says who signed, and does nothing else for the same signature', async () => {
    const { url, id } = readFrom();
    const { sts, ec2 } = platform;
    expect(await sent(url, id, sts.port)).toMatchObject({
      status: 200,
      body: expect.stringContaining(worker()) as string,
    });
    for (const [changed, port] of [
      [url.replace('GetCallerIdentity', 'AssumeRole'), sts.port],
      [`${url}&RoleArn=arn%3Aaws%3Aiam%3A%3A${account}%3Arole%2Fnode`, sts.port],
      [url.replace('GetCallerIdentity', 'DescribeInstances').replace('//sts.', '//ec2.'), ec2.port],
      [url.replace('%2Fsts%2F', '%2Fec2%2F').replace('//sts.', '//ec2.'), ec2.port],
      [url.replaceAll(region, 'us-east-1'), sts.port],
    ] as const) {
      const { status } = await sent(changed, id, port);
      expect([changed.slice(0, 60), status >= 400]).toEqual([changed.slice(0, 60), true]);
    }
  });

  test('finding 7: not for long: 15 minutes after it was signed it is nothing', async () => {
    const { url, id } = readFrom({ evidence: { at: platform.now() - 16 * 60_000 } });
    expect((await sent(url, id, platform.sts.port)).status).toBe(403);
  });
});

/** Why roles whose session name can be chosen keep aws/v1, and what their operators have to see to. */
test('a proof by the role of an instance profile is accepted by a Vault without a server id', async () => {
  const { url, id } = readFrom({ evidence: { signedBy: 'profile' } });
  const request = { method: 'GET', url, headers: { 'x-k8s-aws-id': id } } as const;
  expect(await vaultIam(platform.sts, {})(request)).toEqual({ arn: expect.stringContaining('/node/i-') as string });
});
