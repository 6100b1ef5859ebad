/** Ways to break one behaviour of the real handler: the request it receives, its answer, its certificates. */
import { X509Certificate } from 'node:crypto';
import type { HttpAnswer, HttpEvent, HttpHandler } from '../../../../adapters/lambda/http.ts';
import { assembleCertificate } from '../../../../core/x509/leaf-certificate.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { errorAnswer } from '../../../../adapters/lambda/answers.ts';
import { fieldsOf } from '../../../corpus/certificate-fields.ts';
import type { CertificateFields } from '../../../corpus/certificate-fields.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import type { SanSpec } from '../../../harness/x509/requests.ts';
import { ask, questionFor } from '../../../conformance/questions.ts';

/** The parts of a request object that faults change. */
export interface Posted {
  readonly apiVersion: string;
  readonly metadata: Readonly<Record<string, unknown>> & { readonly uid: string };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status: Readonly<Record<string, unknown>>;
}

export interface Site {
  readonly handler: HttpHandler;
  readonly authority: Authority;
}

export type Wrap = (site: Site) => HttpHandler;

export function postedIn(event: HttpEvent): Posted | undefined {
  try {
    const object = JSON.parse(Buffer.from(event.body ?? '', 'base64').toString()) as Partial<Posted> | null;
    return typeof object?.metadata?.uid === 'string' && object.spec !== undefined ? (object as Posted) : undefined;
  } catch {
    return undefined;
  }
}

export const outcomeOf = ({ headers }: HttpAnswer): string => headers['x-countersign-outcome'] ?? '';
export const jsonOf = ({ body }: HttpAnswer): Record<string, unknown> => JSON.parse(body) as Record<string, unknown>;
export const withJson = (answer: HttpAnswer, json: object): HttpAnswer => ({ ...answer, body: JSON.stringify(json) });
export const isSign = ({ rawPath }: HttpEvent): boolean => rawPath.endsWith('/sign');

type Change = (answer: HttpAnswer, event: HttpEvent, site: Site) => HttpAnswer | Promise<HttpAnswer>;

/** The right answer, changed. */
export function answering(change: Change): Wrap {
  return (site) => async (event) => change(await site.handler(event), event, site);
}

/** Changes what is issued, and nothing else. */
export function issuing(change: (object: Posted, event: HttpEvent) => object): Wrap {
  return answering((answer, event) =>
    outcomeOf(answer) === 'issued' ? withJson(answer, change(jsonOf(answer) as unknown as Posted, event)) : answer,
  );
}

/** Gives the handler another object than was posted, and puts the posted one back into the answer. */
export function hearing(change: (posted: Posted) => Posted | Promise<Posted>): Wrap {
  return ({ handler }) =>
    async (event) => {
      const posted = isSign(event) ? postedIn(event) : undefined;
      if (posted === undefined) return handler(event);
      const body = Buffer.from(JSON.stringify(await change(posted))).toString('base64');
      const answer = await handler({ ...event, body });
      if (outcomeOf(answer) !== 'issued') return answer;
      const { certificate } = (jsonOf(answer) as unknown as Posted).status;
      return withJson(answer, { ...posted, status: { ...posted.status, certificate } });
    };
}

/** An error in the right form, but another error than it should be. */
export function restated(answer: HttpAnswer, status: number, outcome: 'invalid' | 'refused' | 'ignored'): HttpAnswer {
  return errorAnswer(status, outcome, String(jsonOf(answer)['message']));
}

interface Cause {
  readonly reason: string;
  readonly message: string;
}

export function causesOf(answer: HttpAnswer): readonly Cause[] {
  if (outcomeOf(answer) !== 'refused') return [];
  const details = jsonOf(answer)['details'] as { readonly causes?: readonly Cause[] } | undefined;
  return details?.causes ?? [];
}

/** Answers refusals with these reasons as invalid (400). */
export function refusingAsInvalid(...reasons: readonly string[]): Wrap {
  return answering((answer) =>
    answer.statusCode === 422 && causesOf(answer).some(({ reason }) => reasons.includes(reason))
      ? restated(answer, 400, 'invalid')
      : answer,
  );
}

/** Refusals with other causes, and the message that goes with them. */
export function refusingWith(change: (causes: readonly Cause[]) => readonly Cause[]): Wrap {
  return answering((answer) => {
    const causes = causesOf(answer);
    if (causes.length === 0) return answer;
    return errorAnswer(
      answer.statusCode,
      'refused',
      change(causes)
        .map(({ message }) => message)
        .join('; '),
      change(causes),
    );
  });
}

/** Signs a request that should be refused with such a message, with other names than requested: only that it signs counts. */
export function signingInstead(message: RegExp, sans: SanSpec): Wrap {
  return answering(async (answer, event, { handler }) => {
    const posted = postedIn(event);
    if (posted === undefined || !causesOf(answer).some((cause) => message.test(cause.message))) return answer;
    const subject = { O: 'system:nodes', CN: String(posted.spec['username']) };
    const request = makeRequest({ subject, sans }).bytes.toString('base64');
    const changed = { ...posted, spec: { ...posted.spec, request } };
    return handler({ ...event, body: Buffer.from(JSON.stringify(changed)).toString('base64') });
  });
}

/** Answers a request that should be refused with such a message with a certificate, of another request. */
export function issuingDespite(words: RegExp): Wrap {
  return ({ handler }) =>
    async (event) => {
      const answer = await handler(event);
      const posted = postedIn(event);
      const refused = outcomeOf(answer) === 'refused' && words.test(String(jsonOf(answer)['message']));
      if (posted === undefined || !refused) return answer;
      const { object } = ask(questionFor('kubernetes.io/kube-apiserver-client', { username: 'planted', groups: [] }));
      const issued = await handler({ ...event, body: Buffer.from(JSON.stringify(object)).toString('base64') });
      const { certificate } = (jsonOf(issued) as unknown as Posted).status;
      return withJson(issued, { ...posted, status: { ...posted.status, certificate } });
    };
}

type FieldChange = (fields: CertificateFields, posted: Posted | undefined) => Partial<CertificateFields>;

/** Certificates with other fields, signed by the CA, and the same one for each repeated request. */
export function certifying(change: FieldChange): Wrap {
  const made = new Map<string, Promise<string>>();
  return answering(async (answer, event, { authority }) => {
    if (outcomeOf(answer) !== 'issued') return answer;
    const object = jsonOf(answer) as unknown as Posted;
    const original = String(object.status['certificate']);
    if (!made.has(original)) made.set(original, resigned(original, change, postedIn(event), authority));
    return withJson(answer, { ...object, status: { ...object.status, certificate: await made.get(original) } });
  });
}

async function resigned(
  original: string,
  change: FieldChange,
  posted: Posted | undefined,
  { signer }: Authority,
): Promise<string> {
  const fields = fieldsOf(new X509Certificate(Buffer.from(original, 'base64')).raw);
  const tbs = encodeTbs({ ...fields, ...change(fields, posted) });
  const certificate = assembleCertificate(tbs, (await signer.sign(tbs)).bytes, signer.algorithm);
  return Buffer.from(toPem('CERTIFICATE', certificate)).toString('base64');
}

function encodeTbs(fields: CertificateFields): Uint8Array<ArrayBuffer> {
  const extensions = der.constructed(3, der.sequence(...fields.extensions.map(({ whole }) => whole)));
  return new Uint8Array(
    der.sequence(
      fields.version,
      der.tlv(0x02, fields.serial),
      fields.innerAlgorithm,
      fields.issuer,
      der.sequence(fields.notBefore, fields.notAfter),
      fields.subject,
      fields.spki,
      extensions,
    ),
  );
}

type Extensions = CertificateFields['extensions'];
export const withoutExtension = (extensions: Extensions, oid: string): Extensions =>
  extensions.filter((each) => each.oid !== oid);
export const withExtension = (extensions: Extensions, oid: string, whole: Buffer): Extensions =>
  extensions.map((each) => (each.oid === oid ? { ...each, whole } : each));
