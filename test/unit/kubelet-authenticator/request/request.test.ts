import { createHash, createPrivateKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { bindingDigest } from '../../../../core/attestation/evidence/binding-digest.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { decodeEvidence } from '../../../../core/attestation/evidence/evidence.ts';
import { awsProvider } from '../../../../kubelet-authenticator/providers/aws.ts';
import { makeRequest, newKey, requestObject } from '../../../../kubelet-authenticator/request/request.ts';
import { keyKinds, resolveSettings } from '../../../../kubelet-authenticator/settings/settings.ts';
import { settingsFile } from '../settings-file.ts';

const resolved = resolveSettings(JSON.stringify(settingsFile));
if (!resolved.ok) throw new Error(resolved.problem.join());
const settings = resolved.value;
const wanted = { signerName: 'example.com/s', usages: ['client auth'], names: { ip: [], dns: [] } };

const answers: Record<string, string> = {
  'meta-data/placement/region': 'cn-north-1',
  'meta-data/placement/availability-zone': 'cn-north-1b',
  'meta-data/instance-id': 'i-0123456789abcdef0',
  'meta-data/local-ipv4': '10.0.0.1',
  'meta-data/local-hostname': 'ip-10-0-0-1.internal second.example',
  'dynamic/instance-identity/rsa2048': 'bGluZQ==\nMg==',
  'meta-data/identity-credentials/ec2/info': JSON.stringify({ Code: 'Success', AccountId: '111122223333' }),
  'meta-data/identity-credentials/ec2/security-credentials/ec2-instance': JSON.stringify({
    Code: 'Success',
    AccessKeyId: 'ASIAX',
    SecretAccessKey: 'secret',
    Token: 'token',
  }),
};
const signed: object[] = [];
const read: string[] = [];
const imds = {
  read(path: string) {
    read.push(path);
    return Promise.resolve(answers[path]);
  },
};
const provider = awsProvider(imds, (proof) => {
  signed.push(proof);
  return Promise.resolve('k8s-aws-v1.x');
});

/** Provider and version, and the content of the DATA block. */
function evidenceIn(text: string): readonly [version: string, data: object] {
  const decoded = decodeRequest(Buffer.from(text));
  const sent = decoded.ok ? decodeEvidence(decoded.value.evidence) : undefined;
  const evidence = sent?.ok === true ? sent.value : undefined;
  if (evidence === undefined) throw new Error('no evidence');
  return [evidence.version, JSON.parse(Buffer.from(evidence.data).toString()) as object];
}

test.each(keyKinds)('a request for a %s key is what the signing side reads', async (kind) => {
  const key = newKey(kind);
  const request = await makeRequest(settings, wanted, key, provider, { version: 'aws/v2', now: 1_000 });
  const decoded = decodeRequest(Buffer.from(request.text));
  if (!decoded.ok) throw new Error(JSON.stringify(decoded));
  expect(decoded.value).toMatchObject({
    subject: { commonName: 'system:node:n1', organizations: ['system:nodes'] },
    providerId: 'aws:///cn-north-1b/i-0123456789abcdef0',
    requestedExtensions: ['1.3.6.1.4.1.11129.2.1.21'],
    sans: { ip: [], dns: [] },
  });
  expect(decoded.value.publicKey.kind).toBe(kind.startsWith('RSA') ? 'RSA' : kind);
  expect(request.name).toBe(`node-csr-${createHash('sha256').update(request.text).digest('hex').slice(0, 32)}`);
  expect(request.staleAt).toBe(1_000 + 5 * 60_000);
  expect(createPrivateKey(key).type).toBe('private');

  const [version, data] = evidenceIn(request.text);
  const { nonce } = data as { readonly nonce: string };
  expect([version, data]).toEqual([
    'aws/v2',
    {
      v: 2,
      account: '111122223333',
      region: 'cn-north-1',
      instance: 'i-0123456789abcdef0',
      sts: 'k8s-aws-v1.x',
      nonce: expect.stringMatching(/^[\w-]{22}$/) as string,
    },
  ]);
  const { audience, nodeName } = settings;
  const bound = {
    audience,
    signerName: wanted.signerName,
    nodeName,
    nonce,
    spki: decoded.value.publicKey.spki,
  };
  expect(signed.at(-1)).toMatchObject({
    host: 'sts.cn-north-1.amazonaws.com.cn',
    id: `csr-attest/v1/demo/${bindingDigest(bound)}`,
    now: 1_000,
  });
});

test('finding 7: what a node writes holds no signed document, and the node does not even read one', async () => {
  read.length = 0;
  const { text } = await makeRequest(settings, wanted, newKey('P-256'), provider, { version: 'aws/v2', now: 0 });
  expect(read.filter((path) => path.includes('instance-identity'))).toEqual([]);
  expect(Object.keys(evidenceIn(text)[1])).toEqual(['v', 'account', 'region', 'instance', 'sts', 'nonce']);
});

test('for a signing side that takes aws/v1 only, the document of the instance', async () => {
  const { text } = await makeRequest(settings, wanted, newKey('P-256'), provider, { version: 'aws/v1', now: 0 });
  expect(evidenceIn(text)).toEqual([
    'aws/v1',
    { v: 1, rsa2048: 'bGluZQ==\nMg==', sts: 'k8s-aws-v1.x', nonce: expect.stringMatching(/^[\w-]{22}$/) as string },
  ]);
});

test('two of one moment, for one key, are two: a proof is taken once', async () => {
  const key = newKey('P-256');
  const [one, two] = [
    await makeRequest(settings, wanted, key, provider, { version: 'aws/v2', now: 5 }),
    await makeRequest(settings, wanted, key, provider, { version: 'aws/v2', now: 5 }),
  ];
  const ids = signed.slice(-2).map((proof) => (proof as { id: string }).id);
  expect(ids[0]).not.toBe(ids[1]);
  expect(one.name).not.toBe(two.name);
});

test('names go into the request, the object into the API as it is', async () => {
  const names = { ip: ['10.0.0.1', '2001:db8::1'], dns: ['n1.example.com'] };
  const request = await makeRequest(settings, { ...wanted, names }, newKey('P-256'), provider, {
    version: 'aws/v2',
    now: 0,
  });
  expect(decodeRequest(Buffer.from(request.text))).toMatchObject({ value: { sans: names } });
  expect(requestObject(request, wanted)).toEqual({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: request.name },
    spec: {
      signerName: 'example.com/s',
      request: Buffer.from(request.text).toString('base64'),
      usages: ['client auth'],
    },
  });
});

test('an instance that lacks what a proof needs: the message names what is missing, and contains no secret', async () => {
  const without = (path: string, text?: string) =>
    awsProvider({ read: (asked) => Promise.resolve(asked === path ? text : answers[asked]) }, () =>
      Promise.resolve('x'),
    );
  const made = (broken: typeof provider) =>
    makeRequest(settings, wanted, newKey('P-256'), broken, { version: 'aws/v2', now: 0 });
  const credentials = 'meta-data/identity-credentials/ec2/security-credentials/ec2-instance';
  await expect(made(without(credentials))).rejects.toThrow(`the metadata service has no ${credentials}`);
  await expect(made(without(credentials, '{"Code":"Failed","Token":"t0ps3cret"}'))).rejects.toThrow(
    /^(?!.*t0ps3cret).*gives no credentials/,
  );
  const info = 'meta-data/identity-credentials/ec2/info';
  await expect(made(without(info))).rejects.toThrow(`the metadata service has no ${info}`);
  for (const text of ['{"Code":"Success"}', '{"Code":"Failed","AccountId":"111122223333"}', 'null', '<html>'])
    await expect(made(without(info, text))).rejects.toThrow('names no account');
  await expect(made(without('meta-data/placement/region', 'mars-1'))).rejects.toThrow(
    'mars-1 belongs to no known partition',
  );
  expect((await provider.describe()).names).toEqual(['10.0.0.1', 'ip-10-0-0-1.internal']);
});
