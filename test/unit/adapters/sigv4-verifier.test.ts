import { describe, expect, test } from 'vitest';
import { verifySigV4 } from '../../harness/sigv4-verifier.ts';
import type { ReceivedRequest } from '../../harness/sigv4-verifier.ts';

describe('the verifier of these tests', () => {
  const date = '20150830T123600Z';
  const now = Date.parse('2015-08-30T12:36:00Z');
  const scope = (rest: string) => `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/${rest}`;
  const published: readonly (readonly [string, Omit<ReceivedRequest, 'body'>])[] = [
    // From AWS's documentation of the process, and two of its published test suite.
    [
      'ListUsers',
      {
        method: 'GET',
        target: '/?Action=ListUsers&Version=2010-05-08',
        headers: {
          authorization: scope(
            'iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
          ),
          'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
          host: 'iam.amazonaws.com',
          'x-amz-date': date,
        },
      },
    ],
    [
      'get-vanilla',
      {
        method: 'GET',
        target: '/',
        headers: {
          authorization: scope(
            'service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
          ),
          host: 'example.amazonaws.com',
          'x-amz-date': date,
        },
      },
    ],
    [
      'post-vanilla',
      {
        method: 'POST',
        target: '/',
        headers: {
          authorization: scope(
            'service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
          ),
          host: 'example.amazonaws.com',
          'x-amz-date': date,
        },
      },
    ],
  ];
  const verify = (request: ReceivedRequest, at = now) =>
    verifySigV4(request, () => 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', at);

  test.each(published)('agrees with AWS on %s, and with nothing near it', (_, request) => {
    const received = { ...request, body: Buffer.alloc(0) };
    expect(verify(received)).toMatchObject({ accessKeyId: 'AKIDEXAMPLE', region: 'us-east-1' });
    const wrong = 'signature does not match';
    expect(verify({ ...received, method: 'PUT' })).toBe(wrong);
    expect(verify({ ...received, target: '/x' })).toBe(wrong);
    expect(verify({ ...received, body: Buffer.from('x') })).toBe(wrong);
    expect(verify({ ...received, headers: { ...received.headers, host: 'evil.example' } })).toBe(wrong);
    expect(verify({ ...received, headers: { ...received.headers, 'x-amz-security-token': 'x' } })).toMatch(
      /not signed/,
    );
    expect(verify(received, now + 300_001)).toBe('expired');
  });
});
