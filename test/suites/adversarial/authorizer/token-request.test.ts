import { createHmac, createPublicKey } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectIssuer } from '../../../../adapters/signing-api/openid-issuer.ts';
import type { BundledAccess } from '../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { createAuthorizer } from '../../../../lambdas/authorizer/authorizer.ts';
import type { AuthorizerEvent, AuthorizerLogEntry } from '../../../../lambdas/authorizer/authorizer.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { clusterRoleBinding, createObject, subject as rbacSubject } from '../../../harness/kubernetes/objects.ts';
import { eventually } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

const audience = 'countersign.prod';
const account = 'relay';
const subject = `system:serviceaccount:default:${account}`;

interface Jwks {
  readonly keys: readonly (JsonWebKey & { readonly kid: string })[];
}

/** Tokens that a kubelet would project into a pod, from the API server that made them, at the JWT way's door. */
describe.skipIf(skip)('tokens of a real API server', () => {
  /** `open` publishes its keys to unauthenticated clients; `closed` is a private cluster, as another of the same name would be. */
  let open: ControlPlane;
  let closed: ControlPlane;

  beforeAll(async () => {
    [open, closed] = await Promise.all([startControlPlane({ ownIssuer: true }), startControlPlane()]);
    for (const plane of [open, closed])
      for (const name of [account, 'other']) {
        const metadata = { name, namespace: 'default' };
        await createObject(plane.admin, { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
      }
    // As an operator does who wants the issuer to be read from outside.
    const discovery = 'system:service-account-issuer-discovery';
    const withoutLogin = rbacSubject('Group', 'system:unauthenticated');
    await createObject(open.admin, clusterRoleBinding('keys', discovery, withoutLogin));
    const anonymous = await open.client('anonymous');
    const headers = { accept: 'application/jwk-set+json' };
    const isPublic = async () => (await anonymous.request('/openid/v1/jwks', { headers })).status === 200;
    await eventually(isPublic, 'the keys can be read without a login');
    anonymous.close();
  });
  afterAll(async () => {
    await open?.stop();
    await closed?.stop();
  });

  async function tokenOf(
    plane: ControlPlane,
    {
      name = account,
      audiences = [audience],
      seconds = 3_600,
    }: { name?: string; audiences?: string[]; seconds?: number },
  ): Promise<string> {
    const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`;
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences, expirationSeconds: seconds },
    };
    return (await plane.admin.expectOk<{ status: { token: string } }>(path, { method: 'POST', body })).status.token;
  }

  const keysOf = (plane: ControlPlane): Promise<Jwks> =>
    plane.admin.expectOk<Jwks>('/openid/v1/jwks', { headers: { accept: 'application/jwk-set+json' } });
  /** Read from countersign.yaml, the keys pasted as `kubectl get --raw /openid/v1/jwks` printed them. */
  async function privateAccess(plane: ControlPlane): Promise<BundledAccess> {
    const jwks = await plane.kubectl(['get', '--raw', '/openid/v1/jwks']);
    return accessFrom({ issuer: 'https://kubernetes.default.svc', jwks });
  }
  const publicAccess = (): BundledAccess => accessFrom({ issuer: open.url });

  function accessFrom(jwt: Record<string, unknown>): BundledAccess {
    const file = {
      version: 1,
      clusters: {
        prod: {
          cas: { clients: { subject: { commonName: 'clients' } } },
          profiles: { 'kubernetes.io/kube-apiserver-client': { ca: 'clients' } },
          access: { jwt: { audience, subjects: [subject], ...jwt } },
        },
      },
    };
    const parsed = parseConfiguration(JSON.stringify(file), 'countersign.yaml');
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    return { cluster: 'prod', jwt: parsed.value.configuration.deployments.get('prod')!.access.jwt! };
  }

  async function ask(token: string, access: BundledAccess, { at = Date.now(), cluster = 'prod' } = {}) {
    const log: AuthorizerLogEntry[] = [];
    const authorizer = createAuthorizer(access, {
      now: () => at,
      fetchJwks: connectIssuer({ caPem: open.servingCaPem }),
      log: (entry) => log.push(entry),
    });
    const event: AuthorizerEvent = {
      version: '2.0',
      type: 'REQUEST',
      rawPath: `/v1/clusters/${cluster}/sign`,
      headers: { authorization: `Bearer ${token}` },
    };
    const answer = await authorizer(event);
    expect(JSON.stringify([log, answer])).not.toContain(token.split('.')[1]);
    expect(answer.isAuthorized).toBe(log[0]?.authorized);
    return answer.isAuthorized ? `${answer.context?.subject} of ${answer.context?.cluster}` : log[0]?.reason;
  }

  test('come in when the keys are fetched from the issuer, and when they were given', async () => {
    const fetched = await tokenOf(open, {});
    expect(await ask(fetched, publicAccess())).toBe(`${subject} of prod`);
    const given = await tokenOf(closed, { seconds: 600 });
    expect(await ask(given, await privateAccess(closed))).toBe(`${subject} of prod`);
    // What kubectl asks for is the same.
    const byHand = await closed.kubectl(['create', 'token', account, `--audience=${audience}`, '--duration=10m']);
    expect(await ask(byHand.trim(), await privateAccess(closed))).toBe(`${subject} of prod`);
  });

  test('do not, for another audience, account, cluster or time', async () => {
    const access = publicAccess();
    const token = await tokenOf(open, {});
    expect(await ask(await tokenOf(open, { audiences: ['vault'] }), access)).toBe('AudienceWrong');
    expect(await ask(await tokenOf(open, { audiences: [] }), access)).toBe('AudienceWrong');
    expect(await ask(await tokenOf(open, { audiences: [audience, 'vault'] }), access)).toBe('AudienceWrong');
    expect(await ask(await tokenOf(open, { name: 'other' }), access)).toBe('SubjectNotAllowed');
    expect(await ask(await tokenOf(open, { seconds: 3_601 }), access)).toBe('LifetimeTooLong');
    expect(await ask(await tokenOf(open, { seconds: 86_400 }), access)).toBe('LifetimeTooLong');
    expect(await ask(token, access, { at: Date.now() + 3_640_000 })).toBe('Expired');
    expect(await ask(token, access, { at: Date.now() - 120_000 })).toBe('NotYetValid');
    expect(await ask(token, access, { cluster: 'test' })).toBe('OtherCluster');
    expect(await ask(token, access)).toBe(`${subject} of prod`);
  });

  test('of another cluster do not, whether it has a name of its own or says it is this one', async () => {
    const own = await privateAccess(closed);
    expect(await ask(await tokenOf(open, {}), own)).toBe('KeyUnknown');
    expect(await ask(await tokenOf(closed, {}), publicAccess())).toBe('KeyUnknown');
    // Many clusters call their issuer kubernetes.default.svc: then the keys alone tell them apart.
    const sameName = { ...own, jwt: { ...own.jwt, jwks: { keys: (await keysOf(open)).keys } } };
    expect(await ask(await tokenOf(closed, {}), sameName)).toBe('KeyUnknown');
    const oneKey = { ...own, jwt: { ...own.jwt, issuer: 'https://kubernetes.default.svc.cluster.local' } };
    expect(await ask(await tokenOf(closed, {}), oneKey)).toBe('IssuerWrong');
  });

  test('that were changed do not', async () => {
    const access = publicAccess();
    const [head, body, signature] = (await tokenOf(open, { name: 'other' })).split('.') as [string, string, string];
    const { keys } = await keysOf(open);
    const { kid } = keys[0]!;
    const mine = encode({ ...decode(body), sub: subject });
    expect(await ask(`${head}.${mine}.${signature}`, access)).toBe('SignatureInvalid');
    expect(await ask(`${encode({ alg: 'none', kid })}.${mine}.AA`, access)).toBe('AlgorithmNotPermitted');
    expect(await ask(`${encode({ alg: 'none', kid })}.${mine}.`, access)).toBe('TokenMalformed');
    const key = createPublicKey({ key: keys[0]!, format: 'jwk' });
    for (const secret of [
      key.export({ type: 'spki', format: 'pem' }),
      key.export({ type: 'spki', format: 'der' }),
      JSON.stringify(keys[0]),
    ]) {
      const input = `${encode({ alg: 'HS256', kid })}.${mine}`;
      const forged = createHmac('sha256', secret).update(input).digest('base64url');
      expect(await ask(`${input}.${forged}`, access)).toBe('AlgorithmNotPermitted');
      expect(await ask(`${head}.${mine}.${forged}`, access)).toBe('SignatureInvalid');
    }
  });

  test('wait while the issuer refuses to give its keys, or cannot be reached', async () => {
    const token = await tokenOf(open, {});
    await open.kubectl(['delete', 'clusterrolebinding', 'keys']);
    expect(await ask(token, publicAccess())).toBe('KeysUnreachable');
    const unreachable = { ...publicAccess(), jwt: { ...publicAccess().jwt, issuer: 'https://127.0.0.1:1' } };
    expect(await ask(token, unreachable)).toBe('KeysUnreachable');
  });
});

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function decode(text: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Record<string, unknown>;
}
