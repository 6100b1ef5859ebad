/** `countersign ca csr|import|import-key` for a deployed cluster: calls its ca function, which has the rules. */
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import type { ImportedCertificates } from '../../core/ca/import/files.ts';
import type { ImportedCa } from '../../core/configuration/model/cluster.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { callCaFunction, caFault, shownAnswer } from './deployed-ca.ts';
import type { DeployedFlags } from './deployed-ca.ts';
import type { ShownCa } from '../output/ca-text.ts';

/** PEM. */
export async function deployedRequest(flags: DeployedFlags, io: Io): Promise<string> {
  const { name, request } = await callCaFunction({ action: 'csr', ca: flags.name }, flags, io);
  return String(answered(name, request, flags)['pem']);
}

export interface ImportResult {
  readonly ca: ShownCa;
  /** False if it was in force before. */
  readonly created: boolean;
  readonly notes: readonly string[];
}

export async function importIntoDeployed(
  { certificate, chain, root }: ImportedCertificates,
  flags: DeployedFlags,
  io: Io,
): Promise<ImportResult> {
  const base64 = (der: Uint8Array): string => Buffer.from(der).toString('base64');
  const answer = await callCaFunction(
    {
      action: 'import',
      ca: flags.name,
      certificate: base64(certificate),
      chain: chain.map(base64),
      ...(root === undefined ? {} : { root: base64(root) }),
    },
    flags,
    io,
  );
  const { notes } = answer;
  return { ...shownAnswer(answer, flags), notes: Array.isArray(notes) ? notes.map(String) : [] };
}

export interface ImportPlan {
  readonly ca: ImportedCa;
  /** ARN. */
  readonly keyId: string;
}

export async function planOfDeployed(flags: DeployedFlags, io: Io): Promise<ImportPlan> {
  const { name, plan } = await callCaFunction({ action: 'plan', ca: flags.name }, flags, io);
  const { ca, keyId } = answered(name, plan, flags);
  // The function answers with the configuration that it was deployed with.
  return { ca: ca as ImportedCa, keyId: String(keyId) };
}

function answered(name: unknown, result: unknown, flags: DeployedFlags): JsonObject {
  const fields = objectOf(result);
  if (name !== flags.name)
    throw new CommandFailure(exitCodes.configuration, 'the function does not answer like the ca function of a cluster');
  if (fields['ok'] !== true) throw caFault(fields, flags);
  return fields;
}
