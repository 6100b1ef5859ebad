/**
 * The hostile corpus, in this process: what a request is read as and refused for. The suite `hostile` puts the same cases
 * to a handler in a process of its own, and watches time and memory too.
 */
import { createHash } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { decodeRequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import { ourSigner } from '../../../corpus/ask.ts';
import { derivedKey, makeAuthority } from '../../../corpus/authority.ts';
import type { HostileCase } from '../../../corpus/hostile/case.ts';
import { extensionCases } from '../../../corpus/hostile/der-extensions.ts';
import { keyCases } from '../../../corpus/hostile/der-keys.ts';
import { nameCases } from '../../../corpus/hostile/der-names.ts';
import { valueCases } from '../../../corpus/hostile/der-values.ts';
import { derCases } from '../../../corpus/hostile/der.ts';
import { approvedObject } from '../../../corpus/hostile/event.ts';
import { pemCases } from '../../../corpus/hostile/pem.ts';

const now = Date.UTC(2026, 10, 21) / 1000;
const authority = makeAuthority({
  key: derivedKey('P-256', 'hostile'),
  subject: { CN: 'hostile ca' },
  notBefore: new Date((now - 86_400) * 1000),
  notAfter: new Date((now + 864_000) * 1000),
  subjectKeyIdentifier: true,
});
const ours = ourSigner(authority, { maxTtlSeconds: 86_400 });
afterAll(() => ours.close());

const corpus: Readonly<Record<string, readonly HostileCase[]>> = {
  'keys and signatures': keyCases,
  'alternative names and extensions': extensionCases,
  subjects: nameCases,
  'values, depth and width': valueCases,
  PEM: pemCases,
  'encodings at every level': derCases,
};

describe.each(Object.entries(corpus))('%s', (title, cases) => {
  test.for(cases.map((one) => [one.id, one] as const))('%s', async ([id, { expected, input }]) => {
    const given = input();
    if (!('request' in given)) throw new Error('not a request');
    const object = approvedObject({ uid: createHash('sha256').update(`${title}: ${id}`).digest('hex'), ...given });
    const decoded = decodeRequestObject(object);
    if (!decoded.ok && decoded.problem.tooLarge !== true) return expect(expected).toContain('invalid');
    const answer = await ours.ask(object, now);
    return expect(expected).toContain(answer.kind === 'refused' ? answer.codes[0] : answer.kind);
  });
});
