import { fc } from '../../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import { partitionOf } from '../../../../../core/attestation/aws/partition.ts';
import { rebuildStsRequest } from '../../../../../core/attestation/aws/sts-token.ts';
import { presign, stsToken } from '../../../../harness/fake-aws/protocol/presign.ts';
import { credentials, now } from '../../../../corpus/attestation/aws-machine.ts';

const header = `csr-attest/v1/blue/${'b1'.repeat(32)}`;

function rebuild(region: string, url: string) {
  const partition = partitionOf(region);
  if (partition === undefined) throw new Error(`no partition of ${region}`);
  return rebuildStsRequest(stsToken(url), { partition, region, header }, now);
}

describe('the host', () => {
  test.for([
    ['eu-central-1', 'sts.eu-central-1.amazonaws.com'],
    ['us-east-1', 'sts.us-east-1.amazonaws.com'],
    ['cn-northwest-1', 'sts.cn-northwest-1.amazonaws.com.cn'],
    ['us-gov-west-1', 'sts.us-gov-west-1.amazonaws.com'],
    ['eusc-de-east-1', 'sts.eusc-de-east-1.amazonaws.eu'],
  ])('of %s is %s', ([region = '', host = '']) => {
    const url = presign({ credential: credentials.machine, region, id: header, at: now });
    expect(new URL(url).host).toBe(host);
    expect(rebuild(region, url)).toMatchObject({ value: { request: { host } } });
  });

  test.for([
    'us-iso-east-1',
    'us-isob-east-1',
    'eu-isoe-west-1',
    'us-isof-south-1',
    'eu-central-1.evil',
    'EU-central-1',
    '',
    'eu-central-1\n',
  ])('of %j is not known', (region) => {
    expect(partitionOf(region)).toBeUndefined();
  });
});

test('the request that is sent is the one that was signed, word for word', () => {
  const url = presign({ credential: credentials.machine, region: 'eu-central-1', id: header, at: now });
  const proof = rebuild('eu-central-1', url);
  if (!proof.ok) throw new Error(proof.problem);
  const parameters = (query: string) => query.split('&').sort();
  expect(parameters(proof.value.request.path.slice(2))).toEqual(parameters(new URL(url).search.slice(1)));
  expect(proof.value.signature).toBe(new URL(url).searchParams.get('X-Amz-Signature'));
  expect(proof.value.signedAt).toBe(now - (now % 1000));
});

test('whatever is changed in a token, what is sent is of the one form, or nothing is', () => {
  const url = presign({ credential: credentials.machine, region: 'eu-central-1', id: header, at: now });
  const form =
    /^\/\?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ASIA[A-Z0-9]+%2F\d{8}%2Feu-central-1%2Fsts%2Faws4_request&X-Amz-Date=\d{8}T\d{6}Z&X-Amz-Expires=\d{1,3}&X-Amz-Security-Token=(?:[A-Za-z0-9._~-]|%2B|%2F|%3D)+&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&X-Amz-Signature=[0-9a-f]{64}$/;
  let refused = 0;
  let rebuilt = 0;
  const edit = fc.tuple(
    fc.nat(url.length),
    fc.nat(3),
    fc.oneof(
      fc.string({ maxLength: 3 }),
      fc.constantFrom('&', '=', '%', '?', '#', '/', '@', '\\', ';', '\r\n', '%00', '&Action=x', 'ASIA'),
    ),
  );
  fc.assert(
    fc.property(edit, ([at, cut, insert]) => {
      const proof = rebuild('eu-central-1', url.slice(0, at) + insert + url.slice(at + cut));
      if (!proof.ok) {
        refused += 1;
        return;
      }
      rebuilt += 1;
      expect(proof.value.request.host).toBe('sts.eu-central-1.amazonaws.com');
      expect(proof.value.request.path).toMatch(form);
      expect(proof.value.request.headers['x-k8s-aws-id']).toBe(header);
    }),
    { numRuns: 3_000, seed: 20_260_830 },
  );
  // Both happen, so both were looked at.
  expect(refused).toBeGreaterThan(1_000);
  expect(rebuilt).toBeGreaterThan(100);
});
