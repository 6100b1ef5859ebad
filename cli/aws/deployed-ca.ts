/** `countersign ca init|show` for a CA whose key is in KMS: calls the ca function of its cluster's stack. */
import { X509Certificate } from 'node:crypto';
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { importFaults } from '../../core/ca/import/faults.ts';
import { functionName } from '../../core/configuration/resolve/deployment.ts';
import type { ShownCa } from '../output/ca-text.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

export interface DeployedFlags {
  /** Name of the CA. */
  readonly name: string;
  readonly cluster: string;
  readonly function?: string;
  readonly region?: string;
}

export async function initDeployedCa(flags: DeployedFlags, io: Io): Promise<ShownCa> {
  const { created, ca } = await invoke('init', flags, io);
  if (created) return ca;
  throw new CommandFailure(
    exitCodes.conflict,
    `cluster ${flags.cluster} already has a CA ${flags.name}; it was left as it is`,
    // The names need no shell quotes, since they are DNS labels.
    `countersign ca show --cluster ${flags.cluster} --name ${flags.name} shows it`,
  );
}

export async function loadDeployedCa(flags: DeployedFlags, io: Io): Promise<ShownCa> {
  return (await invoke('show', flags, io)).ca;
}

async function invoke(
  action: 'init' | 'show',
  flags: DeployedFlags,
  io: Io,
): Promise<{ ca: ShownCa; created: boolean }> {
  return shownAnswer(await callCaFunction({ action, ca: flags.name }, flags, io), flags);
}

/** The answer of the ca function of this cluster. */
export function callCaFunction(request: object, flags: Omit<DeployedFlags, 'name'>, io: Io): Promise<JsonObject> {
  return callServiceFunction('ca', request, flags, io);
}

/** The answer of this function of this cluster. */
export async function callServiceFunction(
  service: 'ca' | 'kubeadm',
  request: object,
  flags: Omit<DeployedFlags, 'name'>,
  io: Io,
): Promise<JsonObject> {
  const target = flags.function ?? functionName(flags.cluster, service);
  const answer = objectOf(await io.callFunction({ functionName: target, request, region: flags.region }));
  const { cluster } = answer;
  // --function may name any function of the account.
  if (typeof cluster !== 'string')
    throw new CommandFailure(
      exitCodes.configuration,
      `${target} does not answer like the ${service} function of a cluster`,
    );
  if (cluster !== flags.cluster)
    throw new CommandFailure(exitCodes.configuration, `${target} is of cluster ${cluster}, not ${flags.cluster}`);
  return answer;
}

/** The one CA in an answer about CAs. */
export function shownAnswer({ cas }: JsonObject, flags: DeployedFlags): { ca: ShownCa; created: boolean } {
  const ca = objectOf(Array.isArray(cas) ? (cas as readonly unknown[])[0] : undefined);
  if (ca['name'] !== flags.name)
    throw new CommandFailure(exitCodes.configuration, 'the function does not answer like the ca function of a cluster');
  if (ca['ok'] !== true) throw caFault(ca, flags);
  const { certificatePem, keyId, signatureAlgorithm } = ca;
  const certificate = new Uint8Array(new X509Certificate(String(certificatePem)).raw);
  const shown = { certificate, keyId: String(keyId), signatureAlgorithm: String(signatureAlgorithm) };
  return { ca: { name: flags.name, ...shown }, created: ca['created'] === true };
}

export function caFault(
  { why, message }: { readonly why?: unknown; readonly message?: unknown },
  { cluster, name }: DeployedFlags,
): CommandFailure {
  const text = String(message);
  if (why === 'Missing')
    return new CommandFailure(
      exitCodes.notFound,
      text,
      `countersign ca init --cluster ${cluster} --name ${name} creates it, and so does npm run cdk -- deploy`,
    );
  if (why === 'UnknownCa' || why === 'AwaitsImport' || why === 'AwaitsIssuer')
    return new CommandFailure(exitCodes.notFound, text);
  if (why === 'AlreadyInForce')
    return new CommandFailure(
      exitCodes.conflict,
      text,
      `countersign ca show --cluster ${cluster} --name ${name} shows it; another certificate needs a CA of another name`,
    );
  if (typeof why === 'string' && Object.hasOwn(importFaults, why))
    return new CommandFailure(
      exitCodes.refused,
      `${why}: ${text}`,
      'nothing was changed (docs/ca/sources.md has each reason)',
    );
  return new CommandFailure(exitCodes.configuration, text);
}
