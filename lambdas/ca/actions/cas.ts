/** CAs in the answers of the ca function. */
import type { CaFault, LoadedCa } from '../../../core/ca/authority.ts';
import type { ImportFaultName } from '../../../core/ca/import/faults.ts';
import { toPem } from '../../../core/encoding/pem.ts';
import type { CaConfiguration } from '../../../core/configuration/model/cluster.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import { certificateFacts } from '../../../core/x509/read-certificate.ts';
import type { CaPorts } from './ports.ts';
import type { CallReport } from '../../../adapters/lambda/operator-call.ts';

/** The answer about CAs. Temporary failures and a wrong deployment are thrown. */
export interface OperatorAnswer {
  readonly cluster: string;
  readonly cas: readonly CaAnswer[];
}

export type CaAnswer =
  | {
      readonly ok: true;
      readonly name: string;
      /** False if the CA existed before this call. */
      readonly created: boolean;
      readonly certificatePem: string;
      readonly keyId: string;
      readonly signatureAlgorithm: string;
      /** When the first certificate of the CA's path ends: no verifier goes past it. */
      readonly pathEnds: Instant;
    }
  | { readonly ok: false; readonly name: string; readonly why: AnsweredFault; readonly message: string };

export type AnsweredFault = CaFault | ImportFaultName | 'AlreadyInForce' | 'UnknownCa' | 'NotImported';

/** Without `ca`: all CAs of the cluster. */
export interface CasRequest {
  readonly ca?: string;
}

export function decodeCasRequest(fields: Readonly<Record<string, unknown>>): CasRequest | undefined {
  const { ca, ...others } = fields;
  if (Object.keys(others).length > 0 || (ca !== undefined && typeof ca !== 'string')) return undefined;
  return ca === undefined ? {} : { ca };
}

export async function answerAbout(
  { ca: only }: CasRequest,
  ports: CaPorts,
  work: (ca: CaConfiguration) => Promise<LoadedCa & Found>,
): Promise<OperatorAnswer> {
  const cas = await forEachCa<CaAnswer>(only, ports, async (ca) => caAnswer(ca.name, await work(ca)));
  return { cluster: ports.cluster, cas };
}

/** `only`: the name of one CA; without it all CAs of the cluster, one after the other. */
export async function forEachCa<Answer>(
  only: string | undefined,
  ports: CaPorts,
  answer: (ca: CaConfiguration) => Promise<Answer>,
): Promise<readonly (Answer | UnknownCa)[]> {
  const answers: (Answer | UnknownCa)[] = [];
  for (const name of only === undefined ? ports.cas.keys() : [only]) {
    const ca = ports.cas.get(name);
    answers.push(ca === undefined ? unknownCa(name, ports) : await answer(ca));
  }
  return answers;
}

type UnknownCa = Extract<CaAnswer, { ok: false }> & { readonly why: 'UnknownCa' };

export function unknownCa(name: string, { cluster, cas }: CaPorts): UnknownCa {
  const message = `cluster ${cluster} has no CA ${name}; it has ${[...cas.keys()].join(', ')}`;
  return { ok: false, name, why: 'UnknownCa', message };
}

export interface Found {
  readonly created: boolean;
  /** `CaRecord.chain`, if it was read. */
  readonly chain?: readonly Uint8Array[] | undefined;
}

export function caAnswer(name: string, loaded: LoadedCa & Found): CaAnswer {
  if (!loaded.ok) return { ok: false, name, ...loaded.problem };
  const { certificate, signer } = loaded.value;
  return {
    ok: true,
    name,
    created: loaded.created,
    certificatePem: toPem('CERTIFICATE', certificate),
    keyId: signer.keyId,
    signatureAlgorithm: signer.algorithm,
    pathEnds: Math.min(...[certificate, ...(loaded.chain ?? [])].map((der) => certificateFacts(der).notAfter)),
  };
}

export function logOfCas({ cas }: OperatorAnswer, { origin }: CaPorts): CallReport {
  const { now } = origin();
  const states = cas.map((ca) => [ca.name, ca.ok ? (ca.created ? 'made' : 'there') : ca.why] as const);
  const daysLeft = cas.flatMap((ca) => (ca.ok ? [[ca.name, daysUntil(ca.pathEnds, now)] as const] : []));
  return {
    failed: !cas.every(isExpected),
    cas: Object.fromEntries(states),
    daysLeft: Object.fromEntries(daysLeft),
  };
}

/** A CA that awaits what an operator imports is as the configuration wants it. */
export function isExpected(ca: CaAnswer): boolean {
  return ca.ok || ca.why === 'AwaitsImport' || ca.why === 'AwaitsIssuer';
}

function daysUntil(end: Instant, now: Instant): number {
  return Math.floor((end - now) / 86_400_000);
}

export function factsOf(pem: string): ReturnType<typeof certificateFacts> {
  const base64 = pem.replaceAll(/-----[A-Z ]+-----|\s/g, '');
  return certificateFacts(new Uint8Array(Buffer.from(base64, 'base64')));
}
