/** The sign endpoint as it answers an operator: is it well, which rules does it apply, which CAs are in force. */
import { endpointOf } from '../../adapters/aws/sigv4.ts';
import { parsedObject } from '../../core/encoding/json-object.ts';
import { rulesFingerprint, shortFingerprint } from '../../core/configuration/rules-fingerprint.ts';
import { version as ownVersion } from '../../core/version.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { HealthAnswer, HealthCall, Io } from '../runtime/io.ts';
import type { DeployedPlace } from '../trace/place.ts';
import { rowsOr } from './row.ts';
import type { StatusRow } from './row.ts';

export interface EndpointFlags {
  readonly url?: string;
  readonly tokenFile?: string;
}

/** The answer of `…/healthz` (docs/signing-api.md), as far as it could be read. */
export interface Health {
  readonly version: string;
  readonly rulesSha256: string;
  readonly cas: readonly { readonly name: string; readonly notAfter: string }[];
}

const check = 'the endpoint answers';

/** `outputs` rejects with why the stack could not be read. */
export async function lookAtEndpoint(
  { cluster, region }: DeployedPlace,
  flags: EndpointFlags,
  outputs: () => Promise<Readonly<Record<string, string>>>,
  io: Pick<Io, 'readHealth'>,
): Promise<{ readonly rows: readonly StatusRow[]; readonly health?: Health }> {
  let health: Health | undefined;
  const rows = await rowsOr({ id: 'endpoint', check }, async () => {
    const call = await callOf(cluster, region, flags, outputs);
    const asked = await ask(call, io);
    if (asked instanceof CommandFailure)
      return {
        id: 'endpoint',
        check,
        result: 'fail',
        seen: `${call.url}: ${asked.message}`,
        mend: 'a private endpoint answers only from its networks: docs/private-clusters.md',
        facts: { url: call.url },
      };
    const { answer, refused } = asked;
    const { status, milliseconds } = answer;
    const facts = { url: call.url, status, milliseconds };
    const row = { id: 'endpoint', check, facts } as const;
    if (status === 401 || status === 403) {
      const seen = `${call.url}: reached in ${milliseconds} ms, and HTTP ${status} for this login${refused === undefined ? '' : ` (${refused})`}`;
      return { ...row, result: 'unknown', seen, mend: loginHint(call) };
    }
    health = status === 200 ? healthIn(answer.body, cluster) : undefined;
    if (health === undefined) {
      const seen = `${call.url}: HTTP ${status}${answer.outcome === '' ? ' of the front door' : ` (${answer.outcome})`}`;
      const mend =
        status === 404
          ? `is ${cluster} the name of the cluster?`
          : 'the log of the sign function has the reason: docs/runbook.md';
      return { ...row, result: 'fail', seen, mend };
    }
    const { version } = health;
    const seen = `${call.url}, version ${version}, ${milliseconds} ms`;
    return { ...row, result: 'pass', seen, facts: { ...facts, version } };
  });
  return { rows, ...(health === undefined ? {} : { health }) };
}

async function callOf(
  cluster: string,
  region: string | undefined,
  { url, tokenFile }: EndpointFlags,
  outputs: () => Promise<Readonly<Record<string, string>>>,
): Promise<HealthCall> {
  const token = tokenFile === undefined ? undefined : ({ kind: 'tokenFile', path: tokenFile } as const);
  if (url !== undefined) {
    const base = /\/v1\/clusters\/[^/]+$/.test(url) ? url : `${url.replace(/\/+$/, '')}/v1/clusters/${cluster}`;
    if (token !== undefined) return { url: base, region, login: token };
    // The dev server knows no callers. The front doors of AWS have names with a region.
    const { region: named } = endpointOf(new URL(base).hostname);
    if (base.startsWith('http:') && named === undefined) return { url: base, region, login: { kind: 'anonymous' } };
    const found = await outputs().catch((error: unknown) => {
      if (error instanceof CommandFailure) return undefined;
      throw error;
    });
    const role = found?.['CallerRoleArn'];
    return { url: base, region, login: role === undefined ? { kind: 'own' } : { kind: 'role', arn: role } };
  }
  const { SignUrl: signUrl, JwtSignUrl: jwtUrl, CallerRoleArn: arn } = await outputs();
  if (token !== undefined && jwtUrl !== undefined) return { url: jwtUrl, region, login: token };
  if (signUrl !== undefined)
    return { url: signUrl, region, login: arn === undefined ? { kind: 'own' } : { kind: 'role', arn } };
  if (jwtUrl === undefined)
    throw new CommandFailure(exitCodes.configuration, 'the stack has no output SignUrl or JwtSignUrl');
  throw new CommandFailure(
    exitCodes.configuration,
    `${jwtUrl} takes tokens of service accounts only`,
    '--token-file names a file with one: kubectl create token, with the audience and a subject of access.jwt',
  );
}

/** As the caller role if the login may assume it, otherwise as itself. The failure: no answer. */
async function ask(
  call: HealthCall,
  io: Pick<Io, 'readHealth'>,
): Promise<{ readonly answer: HealthAnswer; readonly refused?: string } | CommandFailure> {
  try {
    return { answer: await io.readHealth(call) };
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    if (error.code === exitCodes.temporary) return error;
    if (call.login.kind !== 'role') throw error;
    const own = await ask({ ...call, login: { kind: 'own' } }, io);
    return own instanceof CommandFailure ? own : { ...own, refused: error.message };
  }
}

function loginHint({ login }: HealthCall): string {
  if (login.kind === 'tokenFile') return 'the token must have the audience and a subject of access.jwt, and be valid';
  return 'name the role of the login under access.iam.principals, or allow it execute-api:Invoke (Function URL: lambda:InvokeFunctionUrl) for GET; relays are not concerned';
}

/** Undefined if it is no answer about this cluster. */
function healthIn(body: string, cluster: string): Health | undefined {
  const { version, cluster: named, rulesSha256, cas } = parsedObject(body) ?? {};
  if (named !== cluster || typeof version !== 'string' || !Array.isArray(cas)) return undefined;
  const rules = typeof rulesSha256 === 'string' ? rulesSha256 : '';
  return { version, rulesSha256: rules, cas: cas as Health['cas'] };
}

/** The rules in force, compared with those of the file at hand. */
export function lookAtRules({ file }: DeployedPlace, health: Health | undefined): StatusRow {
  const row = { id: 'rules', check: 'the endpoint applies the rules of the file' } as const;
  const own = file === undefined ? undefined : rulesFingerprint(file.cluster);
  const inForce = health?.rulesSha256 || undefined;
  const facts = { file: own, endpoint: inForce };
  const short = (fingerprint: string): string => shortFingerprint(fingerprint);
  if (health === undefined) return { ...row, result: 'unknown', seen: 'the endpoint did not tell', facts };
  if (inForce === undefined)
    return { ...row, result: 'unknown', seen: `version ${health.version} of the endpoint has no fingerprint`, facts };
  if (own === undefined || file === undefined)
    return { ...row, result: 'none', seen: `rules ${short(inForce)}; no countersign.yaml to compare with`, facts };
  if (own === inForce) return { ...row, result: 'pass', seen: `rules ${short(own)}, ${file.path}`, facts };
  const seen = `in force ${short(inForce)}, ${file.path} ${short(own)}`;
  if (health.version !== ownVersion)
    return {
      ...row,
      result: 'unknown',
      seen: `${seen}: of different versions, ${health.version} and ${ownVersion}`,
      mend: 'ask with the version of the endpoint, or deploy this one',
      facts,
    };
  return {
    ...row,
    result: 'fail',
    seen,
    mend: 'deployed from another version of the file: npm run cdk -- diff shows the difference, deploy applies the file',
    facts,
  };
}
