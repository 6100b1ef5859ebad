/**
 * Google, as far as attestation needs it, on loopback: the token service (workload identity federation from AWS), IAM Credentials and
 * the Compute API, told apart by the Host header. It believes no token that it did not make, asks AWS's STS who signed a proof, and
 * refuses every request that is not exactly as Google documents it. Answers have the fields of Google's, and more than are read.
 */
import { randomBytes } from 'node:crypto';
import type { ReceivedRequest } from '../aws/sigv4-verifier.ts';
import { sendTo } from '../fake-aws/sts-endpoint.ts';
import { startService } from '../fake-aws/service.ts';
import type { Answer, Service } from '../fake-aws/service.ts';

export interface FakeVm {
  readonly projectNumber: string;
  readonly projectId: string;
  readonly zone: string;
  readonly id: string;
  readonly name: string;
  readonly status?: string;
  /** PEM. Absent: no Shielded VM. */
  readonly signingKey?: string;
  /** Fields of the description besides or instead. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface FakePool {
  /** `//iam.googleapis.com/projects/…/providers/…` */
  readonly provider: string;
  /** The AWS account of its provider. */
  readonly account: string;
  /** The assumed role, without its session, that is admitted: `arn:aws:sts::…:assumed-role/<role>`. */
  readonly role: string;
  /** The service account that the identity may become; absent: the identity itself may read VMs. */
  readonly serviceAccount?: string;
}

export interface FakeGoogle extends Service {
  /** By instance id. */
  readonly vms: Map<string, FakeVm>;
  /** Its keys for identity tokens; the JSON of /oauth2/v3/certs. */
  keySet: object;
  /** The permissions of the identity that reads VMs. */
  readonly permissions: Set<string>;
  /** What was done, in order; nothing that was refused is here. */
  readonly calls: readonly string[];
  /** Every token ends now. */
  revoke(): void;
}

interface Options {
  readonly pool: FakePool;
  /** The port of a fake STS of AWS. */
  readonly stsPort: number;
  readonly now: () => number;
}

const scopes = {
  all: 'https://www.googleapis.com/auth/cloud-platform',
  read: 'https://www.googleapis.com/auth/compute.readonly',
} as const;

interface Token {
  readonly bearer: 'identity' | 'service account';
  readonly scope: string;
  readonly until: number;
}

export async function startFakeGoogle({ pool, stsPort, now }: Options): Promise<FakeGoogle> {
  const vms = new Map<string, FakeVm>();
  const permissions = new Set(['compute.instances.get', 'compute.instances.getShieldedInstanceIdentity']);
  const calls: string[] = [];
  const tokens = new Map<string, Token>();

  function issue(token: Token): string {
    const text = `ya29.${randomBytes(24).toString('base64url')}`;
    tokens.set(text, token);
    return text;
  }

  function bearerOf({ headers }: ReceivedRequest): Token | undefined {
    const token = tokens.get(/^Bearer (\S+)$/.exec(headers['authorization'] ?? '')?.[1] ?? '');
    return token !== undefined && token.until > now() ? token : undefined;
  }

  // ── sts.googleapis.com ──────────────────────────────────────────────────────────────────────────────────────────

  async function exchangeToken(request: ReceivedRequest): Promise<Answer> {
    const { method, target, headers, body } = request;
    if (method !== 'POST' || target !== '/v1/token') return problem(404, 'NOT_FOUND');
    // Google: "do not send the Authorization HTTP header in the request".
    if (headers['authorization'] !== undefined) return oauthError('invalid_request');
    if (headers['content-type'] !== 'application/x-www-form-urlencoded') return oauthError('invalid_request');
    const pairs = [...new URLSearchParams(Buffer.from(body).toString('utf8'))];
    const form = Object.fromEntries(pairs);
    const wanted = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: pool.provider,
      scope: scopes.all,
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token_type: 'urn:ietf:params:aws:token-type:aws4_request',
    };
    if (pairs.length !== 6 || Object.entries(wanted).some(([key, value]) => form[key] !== value))
      return oauthError('invalid_request');
    const arn = await whoSigned(form['subject_token'] ?? '');
    if (arn === undefined) return oauthError('invalid_grant');
    const [, , , , account, session = ''] = arn.split(':');
    if (account !== pool.account || !`arn:aws:sts::${account}:${session}`.startsWith(`${pool.role}/`))
      return oauthError('unauthorized_client', 403);
    calls.push(`token for ${arn}`);
    const token = issue({ bearer: 'identity', scope: scopes.all, until: now() + 3_600_000 });
    return json(200, {
      access_token: token,
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 3_599,
    });
  }

  /** The ARN that AWS states for the proof; undefined for a proof that is not for this pool, or that AWS refuses. */
  async function whoSigned(subjectToken: string): Promise<string | undefined> {
    let proof: { url?: unknown; method?: unknown; headers?: unknown };
    try {
      proof = JSON.parse(decodeURIComponent(subjectToken)) as typeof proof;
    } catch {
      return undefined;
    }
    const url = /^https:\/\/(sts\.[a-z0-9-]+\.amazonaws\.com)(\/\?Action=GetCallerIdentity&Version=2011-06-15)$/.exec(
      String(proof.url),
    );
    if (url === null || proof.method !== 'POST' || !Array.isArray(proof.headers)) return undefined;
    const list = proof.headers as readonly { readonly key: string; readonly value: string }[];
    const headers = Object.fromEntries(list.map(({ key, value }) => [key.toLowerCase(), value]));
    if (Object.keys(headers).length !== list.length || headers['host'] !== url[1]) return undefined;
    if (headers['x-goog-cloud-target-resource'] !== pool.provider) return undefined;
    const signed = /SignedHeaders=([^,]+)/.exec(headers['authorization'] ?? '')?.[1]?.split(';') ?? [];
    if (!signed.includes('x-goog-cloud-target-resource')) return undefined;
    const { host: _, ...rest } = headers;
    const answer = await sendTo(stsPort, {
      method: 'POST',
      host: url[1] ?? '',
      path: url[2] ?? '',
      headers: { ...rest, accept: 'application/json', 'content-length': '0' },
    });
    return answer.status === 200 ? /"Arn":"([^"]+)"/.exec(answer.body)?.[1] : undefined;
  }

  // ── iamcredentials.googleapis.com ───────────────────────────────────────────────────────────────────────────────

  function impersonate(request: ReceivedRequest): Answer {
    const { method, target, headers, body } = request;
    const [, account] = /^\/v1\/projects\/-\/serviceAccounts\/([^/:]+):generateAccessToken$/.exec(target) ?? [];
    if (method !== 'POST' || account === undefined) return problem(404, 'NOT_FOUND');
    const token = bearerOf(request);
    if (token?.bearer !== 'identity' || token.scope !== scopes.all) return problem(401, 'UNAUTHENTICATED');
    if (account !== pool.serviceAccount) return problem(403, 'PERMISSION_DENIED');
    if (headers['content-type'] !== 'application/json') return problem(400, 'INVALID_ARGUMENT');
    const { scope, lifetime, ...others } = JSON.parse(Buffer.from(body).toString('utf8')) as Record<string, unknown>;
    const narrow = Array.isArray(scope) && scope.length === 1 && scope[0] === scopes.read;
    if (!narrow || lifetime !== '3600s' || Object.keys(others).length > 0) return problem(400, 'INVALID_ARGUMENT');
    calls.push(`token of ${account}`);
    const until = now() + 3_600_000;
    const accessToken = issue({ bearer: 'service account', scope: scopes.read, until });
    return json(200, { accessToken, expireTime: new Date(until).toISOString() });
  }

  // ── compute.googleapis.com ──────────────────────────────────────────────────────────────────────────────────────

  function compute(request: ReceivedRequest): Answer {
    const [, project, zone, id, part = ''] =
      /^\/compute\/v1\/projects\/([^/]+)\/zones\/([^/]+)\/instances\/([^/?]+)(\/getShieldedInstanceIdentity)?$/.exec(
        request.target,
      ) ?? [];
    if (request.method !== 'GET' || request.body.length > 0 || id === undefined) return problem(404, 'NOT_FOUND');
    const token = bearerOf(request);
    if (token === undefined) return problem(401, 'UNAUTHENTICATED');
    if ((token.bearer === 'service account') !== (pool.serviceAccount !== undefined))
      return problem(403, 'PERMISSION_DENIED');
    const permission = `compute.instances.${part === '' ? 'get' : part.slice(1)}`;
    if (!permissions.has(permission)) return problem(403, 'PERMISSION_DENIED');
    const vm = vms.get(id);
    if (vm === undefined || vm.zone !== zone || (vm.projectNumber !== project && vm.projectId !== project))
      return problem(404, 'NOT_FOUND');
    calls.push(`${permission} ${project}/${zone}/${id}`);
    return json(200, part === '' ? describe(vm) : shieldedIdentity(vm));
  }

  // ── www.googleapis.com ──────────────────────────────────────────────────────────────────────────────────────────

  function certs({ method, target, headers }: ReceivedRequest): Answer {
    // It needs no login, and a token must not be shown to a server that needs none.
    if (method !== 'GET' || target !== '/oauth2/v3/certs' || headers['authorization'] !== undefined)
      return problem(404, 'NOT_FOUND');
    calls.push('keys');
    return json(200, google.keySet);
  }

  const service = await startService((request) => {
    switch (request.headers['host'] ?? '') {
      case 'sts.googleapis.com':
        return exchangeToken(request);
      case 'iamcredentials.googleapis.com':
        return impersonate(request);
      case 'compute.googleapis.com':
        return compute(request);
      case 'www.googleapis.com':
        return certs(request);
      default:
        return problem(404, 'NOT_FOUND');
    }
  });
  const google: FakeGoogle = {
    ...service,
    vms,
    keySet: { keys: [] },
    permissions,
    calls,
    revoke: () => tokens.clear(),
  };
  return google;
}

function describe({ projectId, zone, id, name, status = 'RUNNING', fields = {} }: FakeVm): object {
  const base = `https://www.googleapis.com/compute/v1/projects/${projectId}`;
  return {
    kind: 'compute#instance',
    id,
    creationTimestamp: '2026-08-01T03:04:05.678-07:00',
    name,
    tags: { fingerprint: '42WmSpB8rSM=' },
    machineType: `${base}/zones/${zone}/machineTypes/e2-medium`,
    status,
    zone: `${base}/zones/${zone}`,
    networkInterfaces: [
      {
        kind: 'compute#networkInterface',
        network: `${base}/global/networks/default`,
        networkIP: '10.156.0.7',
        name: 'nic0',
        aliasIpRanges: [{ ipCidrRange: '10.20.3.0/24', subnetworkRangeName: 'pods' }],
        accessConfigs: [
          { kind: 'compute#accessConfig', type: 'ONE_TO_ONE_NAT', name: 'external-nat', natIP: '203.0.113.9' },
        ],
        ipv6Address: '2600:1900:40e0:9c:0:7:0:0',
        ipv6AccessConfigs: [
          { type: 'DIRECT_IPV6', externalIpv6: '2600:1900:40e0:ab:0:0:0:0', externalIpv6PrefixLength: 96 },
        ],
        stackType: 'IPV4_IPV6',
      },
      { kind: 'compute#networkInterface', networkIP: '10.200.0.7', name: 'nic1' },
    ],
    serviceAccounts: [{ email: 'nodes@my-nodes.iam.gserviceaccount.com', scopes: [scopes.all] }],
    labels: { role: 'node' },
    shieldedInstanceConfig: { enableSecureBoot: true, enableVtpm: true, enableIntegrityMonitoring: true },
    lastStartTimestamp: '2026-08-01T03:04:15.000-07:00',
    ...fields,
  };
}

function shieldedIdentity({ signingKey }: FakeVm): object {
  if (signingKey === undefined) return { kind: 'compute#shieldedInstanceIdentity' };
  return {
    kind: 'compute#shieldedInstanceIdentity',
    signingKey: { ekPub: signingKey },
    encryptionKey: { ekPub: '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n' },
  };
}

function json(status: number, body: object): Answer {
  return { status, contentType: 'application/json; charset=UTF-8', body: JSON.stringify(body) };
}

function problem(code: number, status: string): Answer {
  return json(code, { error: { code, message: `secret detail of ${status}`, status } });
}

function oauthError(error: string, status = 400): Answer {
  return json(status, { error, error_description: 'secret detail' });
}
