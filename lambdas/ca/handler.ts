/**
 * Creates the CAs of one cluster and shows them. No HTTP endpoint leads here: CloudFormation invokes the function when it
 * deploys the stack; `countersign ca init|show` invokes it as the operator, who needs `lambda:InvokeFunction`.
 *
 * It creates missing CAs and never changes existing ones, so every call can be repeated after any failure.
 */
import type { ResourceResponse } from '../../adapters/aws/cloudformation-response.ts';
import { loadAuthority } from '../../core/ca/authority.ts';
import { createAuthority } from '../../core/ca/create-authority.ts';
import type { CaOrigin } from '../../core/ca/create-authority.ts';
import type { CaFault, CaKey, CaStore, LoadedCa } from '../../core/ca/authority.ts';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { toPem } from '../../core/encoding/pem.ts';
import type { CaConfiguration } from '../../core/configuration/model/cluster.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { named } from '../../core/outcome/trouble.ts';
import type { NamedTrouble } from '../../core/outcome/trouble.ts';

export interface CaPorts {
  readonly cluster: string;
  readonly cas: ReadonlyMap<string, CaConfiguration>;
  readonly key: (ca: string) => CaKey;
  readonly store: CaStore;
  readonly origin: () => CaOrigin;
}

export interface CaHandlerPorts {
  /** Throws if the environment does not match the bundled configuration. */
  readonly connect: () => CaPorts;
  readonly respond: (url: string, response: ResourceResponse) => Promise<void>;
  readonly wait: (milliseconds: number) => Promise<void>;
  readonly log: (entry: CaLogEntry) => void;
}

/** The event that `countersign ca` sends. Without `ca` it means all CAs. */
export interface OperatorRequest {
  readonly action: 'init' | 'show';
  readonly ca?: string;
}

/** The answer to an OperatorRequest. Temporary failures and a wrong deployment are thrown. */
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
    }
  | { readonly ok: false; readonly name: string; readonly why: CaFault | 'UnknownCa'; readonly message: string };

export interface CaLogEntry extends Partial<NamedTrouble> {
  readonly level: 'info' | 'error';
  readonly action: string;
  readonly cluster?: string;
  /** For each CA: `made` by this call, `there` before it, or the fault. */
  readonly cas?: Readonly<Record<string, string>>;
  /** Days until each usable CA certificate expires. An alarm watches them. */
  readonly daysLeft?: Readonly<Record<string, number>>;
  readonly error?: { readonly name: string; readonly message: string };
}

/** https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html */
interface ResourceEvent {
  readonly RequestType: 'Create' | 'Update' | 'Delete';
  readonly ResponseURL: string;
  readonly StackId: string;
  readonly RequestId: string;
  readonly LogicalResourceId: string;
  readonly PhysicalResourceId?: string;
}

export type CaHandler = (event: unknown) => Promise<OperatorAnswer | undefined>;

export function createCaHandler(ports: CaHandlerPorts): CaHandler {
  return async (event) => {
    if (isResourceEvent(event)) {
      await deploy(event, ports);
      return undefined;
    }
    if (!isOperatorRequest(event))
      throw new TypeError(
        'the event is neither a CloudFormation custom resource event nor {"action": "init" | "show"}',
      );
    return logged(event.action, ports, () => initOrShow(event, ports.connect()));
  };
}

/** Always sends CloudFormation a response, since CloudFormation waits an hour for one. */
async function deploy(event: ResourceEvent, ports: CaHandlerPorts): Promise<void> {
  const respond = (result: Pick<ResourceResponse, 'Status' | 'Reason' | 'Data' | 'PhysicalResourceId'>) =>
    ports.respond(event.ResponseURL, {
      ...result,
      StackId: event.StackId,
      RequestId: event.RequestId,
      LogicalResourceId: event.LogicalResourceId,
    });
  // The ID never changes: if it did, CloudFormation would send a Delete for the old ID.
  const id = event.PhysicalResourceId ?? 'countersign-cas';
  // The CA stays when its stack is deleted: the certificates that it signed are still in use.
  if (event.RequestType === 'Delete') return respond({ Status: 'SUCCESS', PhysicalResourceId: id });
  let result: OperatorAnswer;
  try {
    result = await logged(event.RequestType, ports, () => initWithRetries(ports));
  } catch (error) {
    const { name, message } = describe(error);
    return respond({ Status: 'FAILED', PhysicalResourceId: id, Reason: `${name}: ${message}` });
  }
  const faults = result.cas.flatMap((ca) => (ca.ok ? [] : [ca.message]));
  if (faults.length > 0)
    return respond({ Status: 'FAILED', PhysicalResourceId: id, Reason: faults.join('; ').slice(0, 1_000) });
  const fingerprints = result.cas.flatMap((ca) =>
    ca.ok ? [[ca.name, factsOf(ca.certificatePem).fingerprintSha256] as const] : [],
  );
  return respond({ Status: 'SUCCESS', PhysicalResourceId: id, Data: Object.fromEntries(fingerprints) });
}

/**
 * IAM is eventually consistent: a role that has just been created may lack its permissions for half a minute, and CDK waits as long.
 * The sum leaves more than a minute of the function's timeout (lib/services.ts) for the calls.
 */
const pausesMilliseconds = [1_000, 2_000, 4_000, 8_000, 15_000, 20_000];

async function initWithRetries(ports: CaHandlerPorts): Promise<OperatorAnswer> {
  for (const pause of pausesMilliseconds) {
    try {
      return await initOrShow({ action: 'init' }, ports.connect());
    } catch {
      await ports.wait(pause);
    }
  }
  return initOrShow({ action: 'init' }, ports.connect());
}

async function initOrShow({ action, ca: only }: OperatorRequest, ports: CaPorts): Promise<OperatorAnswer> {
  const cas: CaAnswer[] = [];
  for (const name of only === undefined ? ports.cas.keys() : [only]) {
    const ca = ports.cas.get(name);
    if (ca === undefined) cas.push({ ok: false, name, why: 'UnknownCa', message: unknownCa(name, ports) });
    else if (action === 'init')
      cas.push(caAnswer(name, await createAuthority(ca, ports.key(name), ports.store, ports.origin())));
    else cas.push(caAnswer(name, { created: false, ...(await loadAuthority(ca, ports.key(name), ports.store)) }));
  }
  return { cluster: ports.cluster, cas };
}

function unknownCa(name: string, { cluster, cas }: CaPorts): string {
  return `cluster ${cluster} has no CA ${name}; it has ${[...cas.keys()].join(', ')}`;
}

function caAnswer(name: string, loaded: LoadedCa & { readonly created: boolean }): CaAnswer {
  if (!loaded.ok) return { ok: false, name, ...loaded.problem };
  const { certificate, signer } = loaded.value;
  return {
    ok: true,
    name,
    created: loaded.created,
    certificatePem: toPem('CERTIFICATE', certificate),
    keyId: signer.keyId,
    signatureAlgorithm: signer.algorithm,
  };
}

const faulty = { level: 'error', ...named('ca-faults') } as const;

async function logged(
  action: string,
  { connect, log }: CaHandlerPorts,
  work: () => Promise<OperatorAnswer>,
): Promise<OperatorAnswer> {
  try {
    const { cluster, cas } = await work();
    const severity = cas.every(({ ok }) => ok) ? ({ level: 'info' } as const) : faulty;
    const states = cas.map((ca) => [ca.name, ca.ok ? (ca.created ? 'made' : 'there') : ca.why] as const);
    const daysLeft = cas.flatMap((ca) => (ca.ok ? [[ca.name, daysUntil(ca, connect().origin().now)] as const] : []));
    log({ ...severity, action, cluster, cas: Object.fromEntries(states), daysLeft: Object.fromEntries(daysLeft) });
    return { cluster, cas };
  } catch (error) {
    log({ ...faulty, action, error: describe(error) });
    throw error;
  }
}

/** Bounded: the message of an SDK error may be a page long. */
function describe(error: unknown): { readonly name: string; readonly message: string } {
  if (!(error instanceof Error)) return { name: typeof error, message: '' };
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return { name: error.name, message: `${error.message}${cause}`.slice(0, 500) };
}

function daysUntil({ certificatePem }: CaAnswer & { readonly ok: true }, now: Instant): number {
  return Math.floor((factsOf(certificatePem).notAfter - now) / 86_400_000);
}

function factsOf(pem: string): ReturnType<typeof certificateFacts> {
  const base64 = pem.replaceAll(/-----[A-Z ]+-----|\s/g, '');
  return certificateFacts(new Uint8Array(Buffer.from(base64, 'base64')));
}

function isResourceEvent(event: unknown): event is ResourceEvent {
  const { RequestType: type, ...fields } = objectOf(event);
  const texts = ['ResponseURL', 'StackId', 'RequestId', 'LogicalResourceId'].map((name) => fields[name]);
  return (
    (type === 'Create' || type === 'Update' || type === 'Delete') && texts.every((text) => typeof text === 'string')
  );
}

function isOperatorRequest(event: unknown): event is OperatorRequest {
  const { action, ca, ...others } = objectOf(event);
  if (Object.keys(others).length > 0) return false;
  return (action === 'init' || action === 'show') && (ca === undefined || typeof ca === 'string');
}
