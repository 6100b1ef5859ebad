/**
 * What the real kube-controller-manager made of a request, and whether ours does the same. Recorded answers lie in
 * reference.jsonl: a header that says where they come from, then one request a line.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OurAnswer } from './ask.ts';
import { derivedKey, makeAuthority } from './authority.ts';
import type { CorpusAuthority } from './authority.ts';
import { differences, fieldsOf, secondsOf } from './certificate-fields.ts';

export type ReferenceAnswer =
  | { readonly kind: 'issued'; readonly certificate: Buffer }
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string }
  | { readonly kind: 'left alone' };

/** Which CA, and how long it signs for: the main one, one that ends soon, one that ends after 2050. */
export const settings = {
  main: { curve: 'P-256', maxTtlSeconds: 31_536_000 },
  short: { curve: 'P-384', maxTtlSeconds: 31_536_000 },
  long: { curve: 'P-521', maxTtlSeconds: 3_153_600_000 },
} as const;
export type Setting = keyof typeof settings;

export interface RecordedCase {
  readonly setting: Setting;
  readonly signerName: string;
  readonly keyKind: string;
  readonly decision: string;
  /** spec.request as it stands in JSON. */
  readonly request: string;
  readonly usages: readonly string[];
  readonly expirationSeconds?: number;
  /** Condition types. */
  readonly conditions: readonly string[];
  /** Base64 of the DER, when issued. */
  readonly certificate?: string;
}

/** A v1beta1 object without a signer name, and the name the API server gave it. */
export interface RecordedDefault {
  readonly defaulted: string;
  readonly keyKind: string;
  readonly request: string;
  readonly usages?: readonly string[];
}

export interface Recording {
  readonly provenance: Readonly<Record<string, string | number>>;
  /** Base64 of the DER. The keys are derived, see `recordedAuthority`. */
  readonly authorities: Readonly<Record<Setting, string>>;
  readonly cases: readonly RecordedCase[];
  readonly defaults: readonly RecordedDefault[];
}

const file = join(import.meta.dirname, 'reference.jsonl');

export function readRecording(): Recording {
  const [header, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  const { provenance, authorities } = JSON.parse(header ?? '') as Omit<Recording, 'cases' | 'defaults'>;
  const entries = lines.map((line) => JSON.parse(line) as RecordedCase | RecordedDefault);
  return {
    provenance,
    authorities,
    cases: entries.filter((entry): entry is RecordedCase => !('defaulted' in entry)),
    defaults: entries.filter((entry): entry is RecordedDefault => 'defaulted' in entry),
  };
}

export function writeRecording({ provenance, authorities, cases, defaults }: Recording): void {
  const lines = [{ provenance, authorities }, ...cases, ...defaults].map((entry) => JSON.stringify(entry));
  writeFileSync(file, `${lines.join('\n')}\n`);
}

export function newAuthority(setting: Setting, now: Date): CorpusAuthority {
  const inMinutes = (minutes: number): Date => new Date(Math.floor(now.getTime() / 1000) * 1000 + minutes * 60_000);
  return makeAuthority({
    key: corpusKey(setting),
    subject: { O: 'Countersign tests', CN: `corpus ${setting}` },
    notBefore: new Date('2025-01-01T00:00:00Z'),
    notAfter: {
      main: new Date('2045-01-01T00:00:00Z'),
      short: inMinutes(150),
      long: new Date('2140-01-01T00:00:00Z'),
    }[setting],
  });
}

/** The key is the same as when it was recorded, and so every certificate can be made again. */
export function recordedAuthority({ authorities }: Recording, setting: Setting): CorpusAuthority {
  const certificate = Buffer.from(authorities[setting], 'base64');
  const key = corpusKey(setting);
  const base64 = certificate.toString('base64').replaceAll(/.{1,64}/g, '$&\n');
  return {
    key,
    keyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate,
    certificatePem: `-----BEGIN CERTIFICATE-----\n${base64}-----END CERTIFICATE-----\n`,
  };
}

function corpusKey(setting: Setting): CorpusAuthority['key'] {
  return derivedKey(settings[setting].curve, `countersign test corpus, ${setting}`);
}

/** When the reference must have looked at its clock: it starts every certificate five minutes before. */
export function clockOf(answer: ReferenceAnswer, otherwise: number): number {
  return answer.kind === 'issued' ? secondsOf(fieldsOf(answer.certificate).notBefore) + 300 : otherwise;
}

/** Why this is not the same answer; nothing when it is. */
export function mismatches(reference: ReferenceAnswer, ours: OurAnswer, ca: CorpusAuthority['key']): string[] {
  if (reference.kind !== ours.kind) {
    const said = reference.kind === 'refused' ? `refused (${reference.message})` : reference.kind;
    const detail = ours.kind === 'refused' ? `: ${ours.message}` : ours.kind === 'left alone' ? `: ${ours.why}` : '';
    return [`the reference ${said}, ours ${ours.kind}${detail}`];
  }
  if (reference.kind === 'issued' && ours.kind === 'issued')
    return differences(reference.certificate, ours.certificate, ca);
  if (reference.kind === 'refused' && ours.kind === 'refused') {
    const [code] = ours.codes;
    return [
      ...(code === reference.reason ? [] : [`reason: reference ${reference.reason}, ours ${code}`]),
      ...(ours.message.startsWith(reference.message)
        ? []
        : [`message: reference "${reference.message}", ours "${ours.message}"`]),
    ];
  }
  return [];
}

/** Two answers to the same request at different times are the same if this is. */
export function timeless(answer: ReferenceAnswer): string {
  if (answer.kind !== 'issued') return JSON.stringify(answer);
  const { version, innerAlgorithm, issuer, subject, spki, extensions, notBefore, notAfter } = fieldsOf(
    answer.certificate,
  );
  const fields = [version, innerAlgorithm, issuer, subject, spki, ...extensions.map(({ whole }) => whole)];
  const lifetime = secondsOf(notAfter) - secondsOf(notBefore);
  return [...fields.map((field) => field.toString('hex')), lifetime].join(' ');
}
