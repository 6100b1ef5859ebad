import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bindingOf, makeNodeEvidence } from '../../../harness/fake-aws/machine/node-evidence.ts';
import { connectSts } from '../../../harness/fake-aws/sts-endpoint.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { urlOfToken } from '../../../harness/fake-aws/protocol/presign.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';

const aws = createFakeAws();
const { instanceId } = aws.launch({ roleName: 'node' });
const options = {
  clusterName: 'prod',
  audience: '111122223333/eu-central-1/prod',
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  nodeName: 'n1',
};

let sts: FakeSts;
beforeAll(async () => (sts = await startFakeSts({ aws })));
afterAll(() => sts.close());

describe('the evidence of a node', () => {
  test('is the request and two blocks, and STS knows who made it', async () => {
    const made = makeNodeEvidence(aws, instanceId, { ...options, nonce: 'n', providerId: 'aws:///eu-central-1a/i-0' });
    const blocks = [...made.request.matchAll(/-----BEGIN ([A-Z ]+)-----\n([^-]+)-----END \1-----\n/g)];
    expect(blocks.map(([whole]) => whole).join('')).toBe(made.request);
    expect(blocks.map(([, label]) => label)).toEqual([
      'CERTIFICATE REQUEST',
      'KUBELET AUTHENTICATOR ATTESTATION PROVIDER',
      'KUBELET AUTHENTICATOR ATTESTATION DATA',
    ]);
    const [, provider = '', data = ''] = blocks.map(([, , content = '']) => Buffer.from(content, 'base64').toString());
    expect(provider).toBe('aws/v2');
    const claims = { v: 2, account: '111122223333', region: 'eu-central-1', instance: instanceId };
    expect(JSON.parse(data)).toEqual({ ...claims, sts: made.sts, nonce: 'n' });
    const older = makeNodeEvidence(aws, instanceId, { ...options, version: 'aws/v1' });
    expect(older.data).toEqual({ v: 1, rsa2048: aws.rsa2048(instanceId), sts: older.sts });
    const text = execFileSync('openssl', ['req', '-noout', '-verify', '-text'], { input: made.csr.pem, stdio: 'pipe' });
    expect(String(text)).toMatch(/Subject: O = system:nodes, CN = system:node:n1[^]*1\.3\.6\.1\.4\.1\.11129\.2\.1\.21/);

    expect(urlOfToken(made.sts)).toBe(made.presignedUrl);
    const { host, pathname, search } = new URL(made.presignedUrl);
    const ask = (id: string) =>
      connectSts(sts)({ host, path: pathname + search, headers: { 'x-k8s-aws-id': id, accept: 'application/json' } });
    expect((await ask(`csr-attest/v1/prod/${made.binding}`)).body).toContain(
      `assumed-role/aws:ec2-instance/${instanceId}`,
    );
    expect(await ask(`csr-attest/v1/test/${made.binding}`)).toMatchObject({ status: 403 });
  });

  test('is signed by the named credential', async () => {
    const made = makeNodeEvidence(aws, instanceId, { ...options, signedBy: 'profile' });
    const keyId = new URL(made.presignedUrl).searchParams.get('X-Amz-Credential')?.split('/')[0] ?? '';
    expect(aws.credential(keyId)?.principal.arn).toBe(`arn:aws:sts::111122223333:assumed-role/node/${instanceId}`);
  });

  test('binds each field by its length, with numbers reckoned elsewhere', () => {
    // printf 'csr-attest/v1\0\0\1a\0\1s\0\1n\0\0' with the SHA-256 of no bytes behind it, through sha256sum.
    const bound = { audience: 'a', signerName: 's', nodeName: 'n', spki: Buffer.alloc(0) };
    expect(bindingOf(bound)).toBe('ff845d43a03aef4231df99b24844ebd18732b47ac4e8a26d0767023372ca0bc5');
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    const changes = [{ audience: 'as', signerName: '' }, { nonce: 'x' }, { spki }, { nodeName: 'ä' }];
    const digests = changes.map((change) => bindingOf({ ...bound, ...change }));
    expect(new Set([bindingOf(bound), ...digests]).size).toBe(5);
  });
});
