/**
 * The signing API of one or more clusters over HTTP (docs/signing-api.md). It decodes the call, calls core/issue.ts and
 * encodes the outcome; it contains no rules. It is created from ports, so that Lambda, the dev server and the demo run the
 * same code.
 */
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { rulesFingerprint } from '../../core/configuration/rules-fingerprint.ts';
import { issue } from '../../core/issue.ts';
import { decodeBody } from '../../core/encoding/json-body.ts';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { LockReader } from '../../core/ports/locks.ts';
import type { SignOutcome } from '../../core/outcome/outcome.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { CrlStore } from '../../core/ports/revocations.ts';
import type { CertificateLedger } from '../../core/ports/certificate-ledger.ts';
import type { AttestationReader } from '../../core/attestation/check-verdict.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { refuseCaller, unnamedCaller } from '../../adapters/lambda/caller.ts';
import type { CallPorts } from '../../adapters/lambda/caller.ts';
import { decodeEvent, jsonAnswer, readHttpEvent } from '../../adapters/lambda/http.ts';
import type { HttpAnswer, HttpHandler, HttpRequest, LambdaContext } from '../../adapters/lambda/http.ts';
import { errorAnswer, outcomeHeader, rejected, signAnswer, wrongContentType } from '../../adapters/lambda/answers.ts';
import { busyAfter, logEntry, requestNames } from '../../adapters/lambda/log.ts';
import type { Answered, CallLogEntry } from '../../adapters/lambda/log.ts';
import { crl, revokedList } from './published.ts';
import { authoritiesInForce, bundlesBySigner, caCertificate, clientBundle } from './trust.ts';

export interface SignHandlerPorts extends CallPorts {
  readonly version: string;
  readonly cluster: (name: string) => ClusterConfiguration | undefined;
  /** By cluster, for a bundle: it has only a part of the rules. Absent = that of `cluster`. */
  readonly rulesSha256?: (cluster: string) => string;
  readonly ledger: (cluster: string) => CertificateLedger;
  readonly locks: (cluster: string) => LockReader;
  /** Rejects if the CA is unavailable. */
  readonly authority: (cluster: string, ca: string) => Promise<Authority>;
  readonly crls: (cluster: string) => CrlStore;
  /** Undefined if no profile of the cluster enforces attestation. */
  readonly attestations?: (cluster: string) => Attestations | undefined;
}

/** What sign needs of attestation: it reads the store and calls attest, and writes nothing to the store. */
interface Attestations extends Pick<AttestationReader, 'findVerdict' | 'findIdentity' | 'findLock'> {
  readonly attest: (object: JsonObject) => Promise<void>;
}

/** With the invocation that handles this delivery; undefined outside Lambda. */
type SignPorts = SignHandlerPorts & { readonly lambdaRequestId: string | undefined };

/** Names of clusters and CAs are DNS labels, so these paths contain no escapes. */
const paths = {
  health: /^\/healthz$/,
  clusterHealth: /^\/v1\/clusters\/([a-z0-9-]{1,63})\/healthz$/,
  sign: /^\/v1\/clusters\/([a-z0-9-]{1,63})\/sign$/,
  crl: /^\/v1\/clusters\/([a-z0-9-]{1,63})\/crl\/([a-z0-9-]{1,63})$/,
  revoked: /^\/v1\/clusters\/([a-z0-9-]{1,63})\/revoked$/,
  clientBundle: /^\/v1\/clusters\/([a-z0-9-]{1,63})\/trust-bundle$/,
  caCertificate: /^\/v1\/clusters\/([a-z0-9-]{1,63})\/trust-bundle\/([a-z0-9-]{1,63})$/,
  trustBundles: /^\/v1\/clusters\/([a-z0-9-]{1,63})\/trust-bundles$/,
} as const;
type Endpoint = keyof typeof paths;

export function createSignHandler(ports: SignHandlerPorts): HttpHandler {
  return async (event, context) => {
    const started = ports.now();
    const lambdaRequestId = context?.awsRequestId;
    const [answer, fields] = await answerTo(event, context, ports);
    // Successful reads are not logged.
    if ((answer.statusCode !== 200 && answer.statusCode !== 304) || fields.outcome === 'issued')
      ports.log(logEntry(answer, ports.now() - started, { ...fields, lambdaRequestId }));
    return answer;
  };
}

async function answerTo(
  received: unknown,
  context: LambdaContext | undefined,
  ports: SignHandlerPorts,
): Promise<Answered> {
  const event = readHttpEvent(received);
  // No front door sends such an event: an IAM principal invoked the function directly.
  if (event === undefined) return refuseCaller(unnamedCaller);
  const request = decodeEvent(event);
  const { method, path } = request;
  const route = routeOf(path);
  if (route === undefined) return [errorAnswer(404, 'invalid', 'no such path'), { path: printable(path) }];
  const { endpoint, cluster: clusterName, name } = route;
  const allow = endpoint === 'sign' ? 'POST' : 'GET';
  if (method !== allow)
    return [errorAnswer(405, 'invalid', `only ${allow} is allowed here`, [], { headers: { allow } }), { path }];
  if (endpoint === 'health') return [jsonAnswer(200, { version: ports.version }, outcomeHeader('ok')), {}];
  const cluster = ports.cluster(clusterName);
  if (cluster === undefined) return [errorAnswer(404, 'invalid', 'no such cluster'), { path }];

  if (endpoint === 'sign') {
    const caller = ports.caller(event, context);
    return caller.kind === 'allowed'
      ? sign(request, cluster, { ...ports, lambdaRequestId: context?.awsRequestId })
      : refuseCaller(caller, cluster.name);
  }
  try {
    return [await read(endpoint, cluster, name, request, ports), {}];
  } catch (error) {
    const outcome = busyAfter(error, ports.randomBytes);
    return [signAnswer(outcome, undefined), { cluster: clusterName, why: outcome.why, error }];
  }
}

function read(
  endpoint: Exclude<Endpoint, 'sign' | 'health'>,
  cluster: ClusterConfiguration,
  name: string,
  request: HttpRequest,
  ports: SignHandlerPorts,
): Promise<HttpAnswer> {
  switch (endpoint) {
    case 'clusterHealth':
      return health(cluster, ports);
    case 'clientBundle':
      return clientBundle(cluster, ports);
    case 'caCertificate':
      return caCertificate(cluster, name, ports);
    case 'trustBundles':
      return bundlesBySigner(cluster, ports);
    case 'crl':
      return crl(cluster, name, ports);
    case 'revoked':
      return revokedList(cluster, request, ports);
  }
}

interface Route {
  readonly endpoint: Endpoint;
  readonly cluster: string;
  /** Of the CA that the path names; empty if it names none. */
  readonly name: string;
}

function routeOf(path: string): Route | undefined {
  for (const endpoint of Object.keys(paths) as Endpoint[]) {
    const match = paths[endpoint].exec(path);
    if (match !== null) return { endpoint, cluster: match[1] ?? '', name: match[2] ?? '' };
  }
  return undefined;
}

async function sign(
  { headers, body: bytes }: HttpRequest,
  cluster: ClusterConfiguration,
  ports: SignPorts,
): Promise<Answered> {
  const wrongType = wrongContentType(headers);
  if (wrongType !== undefined) return [wrongType, { cluster: cluster.name }];

  let json: unknown;
  let outcome: SignOutcome;
  let error: unknown;
  try {
    const body = decodeBody(bytes);
    if (body.ok) json = body.value;
    outcome = body.ok ? await signObject(json, cluster, ports) : rejected(body.problem);
  } catch (thrown) {
    // Temporary: no certificate was returned, and the next delivery resumes from the record.
    error = thrown;
    outcome = busyAfter(thrown, ports.randomBytes);
  }
  return [signAnswer(outcome, json), { cluster: cluster.name, ...requestNames(json), ...logFieldsOf(outcome), error }];
}

/** The parts of an outcome that may be logged. */
function logFieldsOf(outcome: SignOutcome): Partial<CallLogEntry> {
  switch (outcome.kind) {
    case 'issued': {
      const { serial, repeat, kmsRequestId } = outcome;
      return { outcome: 'issued', serial, repeat, kmsRequestId };
    }
    case 'refused':
      return { codes: outcome.violations.map(({ code }) => code) };
    case 'ignored':
    case 'busy':
      return { why: outcome.why };
    case 'invalid':
      return {};
  }
}

async function signObject(json: unknown, cluster: ClusterConfiguration, ports: SignPorts): Promise<SignOutcome> {
  const decoded = decodeRequestObject(json);
  if (!decoded.ok) return rejected(decoded.problem);
  const attestations = ports.attestations?.(cluster.name);
  return issue(decoded.value, cluster, {
    ...(attestations === undefined
      ? {}
      : { attestations: { ...attestations, attest: () => attestations.attest(json as JsonObject) } }),
    ledger: ports.ledger(cluster.name),
    locks: ports.locks(cluster.name),
    authority: (ca) => ports.authority(cluster.name, ca),
    now: ports.now,
    randomBytes: ports.randomBytes,
    lambdaRequestId: ports.lambdaRequestId,
  });
}

async function health(cluster: ClusterConfiguration, ports: SignHandlerPorts): Promise<HttpAnswer> {
  const cas = [...(await authoritiesInForce(cluster, ports))].map(([name, { certificate }]) => {
    const { fingerprintSha256, notAfter } = certificateFacts(certificate);
    return { name, fingerprintSha256, notAfter: new Date(notAfter).toISOString() };
  });
  const rulesSha256 = ports.rulesSha256?.(cluster.name) ?? rulesFingerprint(cluster);
  return jsonAnswer(200, { version: ports.version, cluster: cluster.name, rulesSha256, cas }, outcomeHeader('ok'));
}
