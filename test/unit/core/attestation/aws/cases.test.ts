/** Every case of test/corpus/attestation, from the evidence as sent to the machine as told, and what was asked of AWS on the way. */
import { describe, expect, test } from 'vitest';
import { awsProvider } from '../../../../../core/attestation/aws/provider.ts';
import * as world from '../../../../corpus/attestation/aws-machine.ts';
import { casesBySubject } from '../../../../corpus/attestation/cases.ts';
import { dataOf, isAsExpected, judge } from '../../../../corpus/attestation/judge.ts';
import type { Case } from '../../../../corpus/attestation/judge.ts';

/** Refused before any call. STS's own judgement is the one exception among tokens. */
const local = new Set(['claims', 'evidence', 'CMS', 'document', 'STS token']);
const sts = `STS sts.${world.region}.amazonaws.com`;
const ec2 = `EC2 {"account":"${world.account}","region":"${world.region}","assumeRole":"arn:aws:iam::${world.account}:role/describe"} ${world.instanceId}`;

describe.each(Object.entries(casesBySubject))('%s', (subject, cases) => {
  test.for(cases.map((one) => [one.name, one] as const))('%s', async ([, one]) => {
    const judged = await judge(awsProvider, one);
    if (!isAsExpected(one, judged)) expect(judged.outcome).toBe(JSON.stringify(one.expect));

    const refusedBySts = typeof one.expect !== 'string' && /signature over|answered by STS/.test(one.expect[1]);
    if (one.expect === 'accepted') expect(judged.asked).toEqual([sts, ec2]);
    else if (local.has(subject)) expect(judged.asked).toEqual(refusedBySts ? [sts] : []);
    else expect(judged.asked[0]).toBe(sts);
    // Whatever was sent, this is all that STS ever sees of it.
    for (const { host, path, headers } of judged.requests) {
      expect(host).toBe(`sts.${world.region}.amazonaws.com`);
      expect(path).toMatch(
        /^\/\?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ASIA[A-Z0-9]+%2F\d{8}%2Feu-central-1%2Fsts%2Faws4_request&X-Amz-Date=\d{8}T\d{6}Z&X-Amz-Expires=\d{1,3}&X-Amz-Security-Token=[A-Za-z0-9%]+&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&X-Amz-Signature=[0-9a-f]{64}$/,
      );
      const nonce = typeof one.data?.['nonce'] === 'string' ? one.data['nonce'] : '';
      expect(headers).toEqual({
        'x-k8s-aws-id': `csr-attest/v1/blue/${world.binding(nonce)}`,
        accept: 'application/json',
      });
    }
  });
});

const all: readonly Case[] = Object.values(casesBySubject).flat();

test('names are told apart, within a subject', () => {
  for (const cases of Object.values(casesBySubject))
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
});

test('the list of tokens and answers that are refused has 45 at least', () => {
  const refused = [...casesBySubject['STS token']!, ...casesBySubject['STS answer']!].filter(
    ({ expect: wanted }) => typeof wanted !== 'string' && wanted[0] === 'AttestationInvalid',
  );
  expect(refused.length).toBeGreaterThanOrEqual(45);
});

test('no message repeats a token, a signature, a document or what else the sender wrote', async () => {
  for (const one of all) {
    const { outcome } = await judge(awsProvider, one);
    const { rsa2048 = '', sts: token = '' } = readable(dataOf(one));
    for (const secret of [
      String(rsa2048).slice(0, 40),
      String(token).slice(11, 60),
      'IQoJ',
      'ASIA',
      'AKIA',
      'evil',
      'X-Amz-Signature=',
    ])
      if (secret.length > 3) expect(outcome).not.toContain(secret);
    expect(outcome.length).toBeLessThan(300);
  }
});

function readable(data: Buffer): { readonly rsa2048?: unknown; readonly sts?: unknown } {
  try {
    return (JSON.parse(data.toString()) ?? {}) as { rsa2048?: unknown; sts?: unknown };
  } catch {
    return {};
  }
}
