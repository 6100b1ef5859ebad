/** The answer to an approved, permitted request: the same object, with a certificate for exactly what was requested. */
import { createPublicKey } from 'node:crypto';
import type { X509Certificate } from 'node:crypto';
import { fieldsOf, secondsOf } from '../../corpus/certificate-fields.ts';
import type { ExtensionSpec } from '../../harness/x509/requests.ts';
import * as der from '../../harness/x509/der-writer.ts';
import { certificateField, certificatesIn, chainOf } from '../answers.ts';
import { brokenChain, notALeaf, notIssued, notPem, wrongValidity } from '../certificate.ts';
import { at, unless } from '../check.ts';
import type { Check, Finding } from '../check.ts';
import { difference } from '../difference.ts';
import { ask } from '../questions.ts';
import type { Issuance, World } from '../world.ts';

/** Checks the shared certificate of each served signer. */
async function each(
  world: World,
  look: (issuance: Issuance) => readonly string[] | Promise<readonly string[]>,
): Promise<Finding> {
  const problems: string[] = [];
  for (const issuance of await world.issuances())
    problems.push(...at(issuance.question.signerName, await look(issuance)));
  return { problems };
}

const anchorsOf = async (world: World, signerName: string): Promise<readonly X509Certificate[]> =>
  certificatesIn((await world.bundles()).get(signerName) ?? '');

const leafOf = ({ answer }: Issuance): X509Certificate => chainOf(answer)[0];

export const issuedChecks: readonly Check[] = [
  {
    id: 'issued',
    rule: 'an approved request that its signer permits is answered 200 with status.certificate, as JSON',
    source: 'docs/signing-api.md; after a 200 without one the webhook client leaves the request unanswered for 12 h',
    async run(world) {
      const served = (await world.issuances()).map(({ question }) => question.signerName);
      return { ...(await each(world, ({ answer }) => notIssued(answer))), note: `signers: ${served.join(', ')}` };
    },
  },
  {
    id: 'unchanged',
    rule: 'the answer is the posted object: same apiVersion and kind, only status.certificate added, unknown fields kept',
    source: 'docs/signing-api.md; gcp-controller-manager decodes the answer as the version that it sent',
    needs: ['issued'],
    run: (world) =>
      each(world, ({ object, answer }) => {
        const expected = { ...object, status: { ...object.status, certificate: certificateField(answer.json) } };
        const different = difference(expected, answer.json);
        return different === undefined ? [] : [different];
      }),
  },
  {
    id: 'pem',
    rule: 'status.certificate is base64 of PEM CERTIFICATE blocks and nothing else, and each block parses',
    source: 'kube-apiserver validates status.certificate this way (pkg/apis/certificates/validation); RFC 7468 §5',
    needs: ['issued'],
    run: (world) => each(world, ({ answer }) => notPem(certificateField(answer.json) ?? '')),
  },
  {
    id: 'key',
    rule: 'the first certificate certifies the key of the request',
    source: 'docs/signing-api.md; no other component checks it: the API server stores any certificate',
    needs: ['pem'],
    run: (world) =>
      each(world, (issuance) =>
        unless(
          leafOf(issuance).publicKey.equals(createPublicKey(issuance.made.key.privateKey)),
          'it is for another key',
        ),
      ),
  },
  {
    id: 'chain',
    rule: 'each certificate is signed by the next, up to a CA of the signer’s trust bundle; the root is not sent',
    source: 'docs/signing-api.md, docs/signers.md (Further CERTIFICATE blocks); RFC 5280 §6.1',
    needs: ['pem', 'trust-bundles'],
    run: (world) =>
      each(world, async ({ answer, question }) =>
        brokenChain(chainOf(answer), await anchorsOf(world, question.signerName)),
      ),
  },
  {
    id: 'names',
    rule: 'subject and subjectAltNames are exactly those of the request',
    source: 'docs/signers.md, Permitted subjects and x509 extensions',
    needs: ['pem'],
    run: (world) =>
      each(world, (issuance) => {
        const { expected } = issuance.question;
        const { subject, subjectAltName = '' } = leafOf(issuance);
        const names = subjectAltName === '' ? [] : subjectAltName.split(', ');
        return [
          ...unless(subject === expected.subject, `subject is ${JSON.stringify(subject)}`),
          ...unless(
            names.toSorted().join() === expected.subjectAltNames.toSorted().join(),
            `subjectAltNames are [${names.join(', ')}], requested were [${expected.subjectAltNames.join(', ')}]`,
          ),
        ];
      }),
  },
  {
    id: 'usages',
    rule: 'key usage and extended key usage are those of spec.usages',
    source: 'docs/signers.md, Permitted key usages; RFC 5280 §4.2.1.3 and §4.2.1.12',
    needs: ['pem'],
    run: (world) =>
      each(world, (issuance) => {
        const { expected } = issuance.question;
        const leaf = leafOf(issuance);
        const bits =
          fieldsOf(leaf.raw)
            .extensions.find(({ oid }) => oid === '551d0f')
            ?.value.toString('hex') ?? '';
        return [
          // In node:crypto, keyUsage holds the extended key usages.
          ...unless(
            (leaf.keyUsage ?? []).join() === expected.extendedKeyUsage.join(),
            `extended key usages are [${(leaf.keyUsage ?? []).join(', ')}]`,
          ),
          ...unless(bits === expected.keyUsage, `key usage is ${bits === '' ? 'absent' : `0x${bits}`}`),
        ];
      }),
  },
  {
    id: 'not-ca',
    rule: 'the certificate is not a CA: critical empty basicConstraints, and only extensions that the signer sets',
    source: 'docs/signers.md, CA bit and Permitted x509 extensions; RFC 5280 §4.2.1.9',
    needs: ['pem'],
    run: (world) => each(world, (issuance) => notALeaf(leafOf(issuance))),
  },
  {
    id: 'serial',
    rule: 'serial numbers are positive, have 8 to 20 octets, and differ',
    source: 'RFC 5280 §4.1.2.2; docs/signers.md',
    needs: ['pem'],
    async run(world) {
      const again = await world.sign(ask(await world.question()).object);
      const serials = [...(await world.issuances()).map(({ answer }) => answer), again]
        .filter((answer) => notIssued(answer).length === 0)
        .map((answer) => fieldsOf(chainOf(answer)[0].raw).serial);
      const odd = serials.filter((serial) => serial.length < 8 || serial.length > 20 || (serial[0] ?? 0x80) >= 0x80);
      return {
        problems: [
          ...unless(serials.length > 1, 'a second request got no certificate'),
          ...odd.map((serial) => `serial ${serial.toString('hex')}`),
          ...unless(
            new Set(serials.map((each) => each.toString('hex'))).size === serials.length,
            'two serial numbers are equal',
          ),
        ],
      };
    },
  },
  {
    id: 'validity',
    rule: 'the certificate is valid now, its validity began a few minutes ago, and it ends no later than its CA',
    source: 'docs/signers.md, Expiration and certificate lifetime; clocks of nodes may be slow',
    needs: ['pem', 'trust-bundles'],
    run: (world) =>
      each(world, async (issuance) =>
        wrongValidity(leafOf(issuance), await anchorsOf(world, issuance.question.signerName)),
      ),
  },
  {
    id: 'lifetime',
    rule: 'expirationSeconds is honoured from 600 s up to what the profile permits',
    source:
      'docs/signers.md, Expiration and certificate lifetime; pkg/controller/certificates/signer/signer.go, duration()',
    needs: ['pem'],
    run: lifetime,
  },
  {
    id: 'extensions-dropped',
    rule: 'a request for a CA certificate (CA:TRUE, keyCertSign, unknown extensions) gets a certificate without them',
    source: 'docs/signers.md, CA bit: everything in the request except names is dropped',
    needs: ['pem'],
    async run(world) {
      const { object } = ask(await world.question(), { request: { extensions: caExtensions } });
      const answer = await world.sign(object);
      const problems = notIssued(answer);
      if (problems.length > 0) return { problems };
      return { problems: notALeaf(chainOf(answer)[0]) };
    },
  },
];

/** notAfter − notBefore does not depend on a clock: the requested lifetime and five minutes before (below 8 h). */
async function lifetime(world: World): Promise<Finding> {
  const question = await world.question();
  const spans: number[] = [];
  for (const expirationSeconds of [600, 1_200, 3_600]) {
    const answer = await world.sign(ask(question, { spec: { expirationSeconds } }).object);
    const problems = notIssued(answer);
    if (problems.length > 0) return { problems: at(`expirationSeconds ${expirationSeconds}`, problems) };
    const { notBefore, notAfter } = fieldsOf(chainOf(answer)[0].raw);
    spans.push(secondsOf(notAfter) - secondsOf(notBefore));
  }
  const [ten = 0, twenty = 0, hour = 0] = spans;
  const wrong = (asked: number, span: number): readonly string[] =>
    // A profile may permit less than an hour: then the longest of the three shows its limit.
    unless(
      Math.abs(span - Math.min(asked + 300, hour)) <= 2,
      `expirationSeconds ${asked} gave a span of ${span} s, not ${Math.min(asked + 300, hour)} s`,
    );
  return {
    problems: [...wrong(600, ten), ...wrong(1_200, twenty), ...unless(hour <= 3_902, `3600 gave a span of ${hour} s`)],
    note: `600, 1200, 3600 s gave spans of ${spans.join(', ')} s`,
  };
}

/** Extensions of a requester that tries to become a CA. */
const caExtensions: readonly ExtensionSpec[] = [
  { oid: '2.5.29.19', critical: true, value: der.sequence(der.boolean(true), der.integer(3)) },
  { oid: '2.5.29.15', critical: true, value: Buffer.from('03020106', 'hex') },
  { oid: '2.5.29.37', value: der.sequence(der.oid('2.5.29.37.0')) },
  { oid: '1.3.6.1.4.1.99999.7', value: der.utf8('mine') },
];
