import { execFile, type ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { connectKubernetes } from '../../../adapters/kubernetes/api.ts';
import { connectSigner } from '../../../adapters/signing-api/client.ts';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import { startCsrApi } from '../../../dev/csr-api/csr-api.ts';
import { openSignService, serveSignService } from '../../../dev/serve/sign-service.ts';
import { createRelay } from '../../../lambdas/watch-relay/relay.ts';
import { systemClock } from '../../../lambdas/watch-relay/runtime/system-clock.ts';
import { startAwsPlatform, type AwsPlatform } from '../attestation/attested-site.ts';
import { startFakeImds } from '../fake-aws/machine/imds.ts';
import { compileCache, temporaryFolder } from '../processes/processes.ts';
import { createTestAuthority, loopbackServerExtensions } from '../x509/test-certificates.ts';

/*
 * A cluster that a node can join, on loopback: sign and attest handlers over the strict fake AWS, the relay that approves,
 * and the stand-in for the API server behind TLS that knows who logs in, as a real one does. The node's program runs in
 * processes of its own. Time is the test's, in all of it.
 */

export const signers = {
  client: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws',
  serving: 'cluster.x-k8s.io/kubelet-serving-aws',
  insecure: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure',
  tpm: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm',
} as const;
export const bootstrapToken = 'abcdef.0123456789abcdef';
const audience = '111122223333/eu-central-1/demo';
const root = resolve(import.meta.dirname, '../../..');

export interface Program {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly milliseconds: number;
}

export interface NodeOptions {
  readonly signerName?: string;
  readonly settings?: Readonly<Record<string, unknown>>;
}

export interface Node {
  readonly name: string;
  readonly cache: string;
  readonly settingsFile: string;
  readonly instanceId: string;
  readonly env: Readonly<Record<string, string>>;
  /** `exec` unless said otherwise. */
  run(options?: RunOptions): Promise<Program>;
  close(): Promise<void>;
}

export interface RunOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeArgs?: readonly string[];
  readonly uid?: number;
  readonly onStart?: (child: ChildProcess) => void;
}

export interface AuthenticatorSite {
  readonly platform: AwsPlatform;
  readonly folder: string;
  readonly clientCaFile: string;
  readonly url: string;
  /** What nodes asked for: `POST system:bootstrap:abcdef`, in order. */
  readonly calls: readonly string[];
  /** Names of all requests there are. */
  requests(): Promise<readonly RequestSeen[]>;
  /** From now on the API server does not answer / answers with that / does. */
  api(state: 'up' | 'down' | 'hangs'): void;
  /** The relay, and with it approval, attestation and signing. */
  signing(state: 'up' | 'down'): Promise<void>;
  node(name: string, options?: NodeOptions): Promise<Node>;
  /** As an administrator. */
  readonly admin: ReturnType<typeof connectKubernetes>;
  close(): Promise<void>;
}

export interface RequestSeen {
  readonly name: string;
  readonly username: string;
  readonly signerName: string;
  readonly pem: string;
  readonly conditions: readonly { readonly type: string; readonly reason: string; readonly message: string }[];
  readonly certificatePem?: string;
}

export interface SiteOptions {
  readonly maxTtl?: string;
  readonly provider?: 'aws' | 'insecure' | 'tpm';
  /** Of the profile of the client signer. */
  readonly profile?: Readonly<Record<string, unknown>>;
  /** Of attestation.aws, besides or instead. */
  readonly aws?: Readonly<Record<string, unknown>>;
  /** attestation.tpm. */
  readonly tpm?: Readonly<Record<string, unknown>>;
}

export async function startAuthenticatorSite({
  maxTtl = '30d',
  profile = {},
  provider = 'aws',
  aws = {},
  tpm,
}: SiteOptions = {}): Promise<AuthenticatorSite> {
  const cleanups: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  };
  try {
    const temporary = temporaryFolder('authenticator');
    cleanups.push(() => temporary.remove());
    const folder = temporary.path;
    const platform = await startAwsPlatform();
    cleanups.push(() => platform.close());

    // Synthesis refuses both in one cluster: the one would give away what the other protects.
    const profiles =
      provider !== 'aws'
        ? { [signers[provider]]: { maxTtl, ...profile } }
        : { [signers.client]: { maxTtl, ...profile }, [signers.serving]: { maxTtl } };
    const parsed = parseConfiguration(
      JSON.stringify({
        version: 1,
        clusters: {
          demo: {
            cas: { ca: { subject: { commonName: 'authenticator ca' } } },
            profiles,
            approval: Object.fromEntries(Object.keys(profiles).map((name) => [name, 'approve'])),
            attestation: {
              audience,
              aws: {
                accounts: { '111122223333': {} },
                regions: ['eu-central-1'],
                vpcs: ['vpc-0aaaaaaaaaaaaaaaa'],
                tags: { 'kubernetes.io/cluster/prod': 'owned' },
                nodeName: ['tag:Name'],
                ...aws,
              },
              ...(tpm === undefined ? {} : { tpm }),
            },
          },
        },
      }),
      'countersign.yaml',
    );
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    const cluster = parsed.value.configuration.clusters.get('demo')!;
    const service = await openSignService({
      clusters: [cluster],
      aws: {
        ...platform.ports,
        ec2: {
          describeInstance(...asked) {
            // The SDK takes over the time of each answer's Date header, which is this machine's and not the test's.
            platform.advance(0);
            return platform.ports.ec2.describeInstance(...asked);
          },
        },
      },
      now: platform.now,
      log: () => {},
    });
    cleanups.push(service.close);
    const http = await serveSignService(service, 0);
    cleanups.push(http.close);
    const base = `${http.url}/v1/clusters/demo`;
    const clientCaFile = join(folder, 'client-ca.pem');
    writeFileSync(clientCaFile, await (await fetch(`${base}/trust-bundle`)).text());

    const standIn = await startCsrApi();
    cleanups.push(standIn.close);
    const adminFile = join(folder, 'admin.kubeconfig');
    writeFileSync(adminFile, standIn.kubeconfig());
    const admin = connectKubernetes({ kind: 'kubeconfig', path: adminFile });
    cleanups.push(() => admin.close());

    let relay: { stop(): Promise<void> } | undefined;
    const startRelay = (): void => {
      const endpoint = connectSigner({ url: base, connections: 4 });
      const stop = new AbortController();
      const running = createRelay(
        {
          signerNames: [...cluster.profiles.keys()],
          policies: new Map(
            [...cluster.profiles.values()].map(({ signerName, kind, attestation }) => [
              signerName,
              { approval: 'approve', kind, ...(attestation === undefined ? {} : { attestation }) },
            ]),
          ),
          concurrency: 4,
          inFlightPerRequester: 4,
          graceMilliseconds: 1_000,
          identity: 'test',
        },
        { api: admin.requests, endpoint, clock: systemClock, random: Math.random, log: silent },
      ).run(stop.signal);
      relay = {
        async stop() {
          stop.abort();
          await running;
          endpoint.close();
          relay = undefined;
        },
      };
    };
    startRelay();
    cleanups.push(() => relay?.stop());

    const front = await startFront(standIn.url, { clientCaFile, folder, now: platform.now });
    cleanups.push(() => front.close());

    return {
      platform,
      folder,
      clientCaFile,
      url: front.url,
      calls: front.calls,
      admin,
      api: (state) => front.state(state),
      async signing(state) {
        if (state === 'down') await relay?.stop();
        else if (relay === undefined) startRelay();
      },
      async requests() {
        const names = [...cluster.profiles.keys()];
        const pages = await Promise.all(
          names.map((signerName) => admin.requests.list({ signerName, limit: 500 }, AbortSignal.timeout(10_000))),
        );
        return pages.flatMap((page) => (page.ok ? page.value.items.map(seen) : []));
      },
      async node(name, options = {}) {
        const node = await createNode(name, options, { platform, folder, front, clientCaFile });
        cleanups.push(() => node.close());
        return node;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function seen(object: object): RequestSeen {
  const { metadata, spec, status } = object as {
    metadata: { name: string };
    spec: { username: string; signerName: string; request: string };
    status?: { conditions?: RequestSeen['conditions']; certificate?: string };
  };
  return {
    name: metadata.name,
    username: spec.username,
    signerName: spec.signerName,
    pem: Buffer.from(spec.request, 'base64').toString(),
    conditions: status?.conditions ?? [],
    ...(status?.certificate === undefined
      ? {}
      : { certificatePem: Buffer.from(status.certificate, 'base64').toString() }),
  };
}

export async function createNode(
  name: string,
  { signerName = signers.client, settings = {} }: NodeOptions,
  site: NodePlace & { platform: AwsPlatform },
): Promise<Node> {
  const { platform } = site;
  const { instanceId } = platform.launch(name);
  const imds = await startFakeImds({ aws: platform.aws, instanceId });
  const provider = signerName === signers.insecure ? 'insecure' : 'aws';
  const installed = installNode(name, `${name}-${instanceId}`, site, {
    settings: { provider, signerName, servingSignerName: signers.serving, audience, ...settings },
    env: { AWS_EC2_METADATA_SERVICE_ENDPOINT: imds.url },
    ahead: () => platform.now() - Date.now(),
  });
  return { ...installed, instanceId, close: () => imds.close() };
}

interface NodePlace {
  readonly folder: string;
  readonly front: Pick<Front, 'url' | 'caFile'>;
  readonly clientCaFile: string;
}

/** The node's program on a machine, with its settings. `ahead`: of this machine's clock, in milliseconds. */
export function installNode(
  name: string,
  home: string,
  { folder, front, clientCaFile }: NodePlace,
  {
    settings: more,
    env: ofMachine,
    ahead = () => 0,
  }: {
    readonly settings: Readonly<Record<string, unknown>>;
    readonly env: Readonly<Record<string, string>>;
    readonly ahead?: () => number;
  },
): Omit<Node, 'instanceId' | 'close'> {
  const place = join(folder, home);
  const cache = join(place, 'cache');
  mkdirSync(place);
  const credentials = join(place, 'bootstrap.json');
  writeFileSync(credentials, JSON.stringify({ token: bootstrapToken }), { mode: 0o600 });
  const settingsFile = join(place, 'settings.json');
  const settings = {
    version: 1,
    nodeName: name,
    clusterName: 'demo',
    server: front.url,
    certificateAuthorityFile: front.caFile,
    bootstrapCredentialsFile: credentials,
    cacheDirectory: cache,
    clientCaBundleFile: clientCaFile,
    ...more,
  };
  writeFileSync(settingsFile, JSON.stringify(settings));
  const env = {
    ...ofMachine,
    KUBERNETES_EXEC_INFO: JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      spec: { interactive: false },
    }),
  };
  return {
    name,
    cache,
    settingsFile,
    env,
    run({ args = ['exec'], env: extra = {}, nodeArgs = [], uid, onStart } = {}) {
      const [command = 'exec', ...rest] = args;
      const program = join(root, 'kubelet-authenticator/kubelet-authenticator.ts');
      const preload = ['--import', join(root, 'test/harness/node/fs-faults.ts')];
      const started = performance.now();
      return new Promise((done) => {
        const child = execFile(
          process.execPath,
          [...preload, ...nodeArgs, program, command, '--settings', settingsFile, ...rest],
          {
            timeout: 60_000,
            killSignal: 'SIGKILL',
            // Nothing of the test's own environment but the compile cache: what is not here the program must not need.
            env: { ...compileCache(), ...env, CLOCK_AHEAD: String(ahead()), ...extra },
            ...(uid === undefined ? {} : { uid, gid: uid }),
          },
          (_error, stdout, stderr) => {
            const milliseconds = performance.now() - started;
            done({ code: child.exitCode, signal: child.signalCode, stdout, stderr, milliseconds });
          },
        );
        onStart?.(child);
      });
    },
  };
}

// ── The API server's door ───────────────────────────────────────────────────────────────────────────────────────────

interface Front {
  readonly url: string;
  readonly caFile: string;
  readonly calls: string[];
  state(state: 'up' | 'down' | 'hangs'): void;
  close(): Promise<void>;
}

/** Who logs in is who his token or certificate says, at the test's time; the stand-in behind believes what it is told. */
async function startFront(
  target: string,
  { clientCaFile, folder, now }: { clientCaFile: string; folder: string; now: () => number },
): Promise<Front> {
  const authority = await createTestAuthority('authenticator test server');
  const serving = await authority.issue({
    subject: [{ CN: ['kube-apiserver'] }],
    extensions: loopbackServerExtensions(),
  });
  const caFile = join(folder, 'server-ca.pem');
  writeFileSync(caFile, authority.certificatePem);
  const issuer = new X509Certificate(readFileSync(clientCaFile));
  const calls: string[] = [];
  let state: 'up' | 'down' | 'hangs' = 'up';

  function whoIs(request: IncomingMessage): string | undefined {
    const { raw } = (request.socket as TLSSocket).getPeerCertificate();
    if (raw !== undefined) {
      const certificate = new X509Certificate(raw);
      const current = certificate.validFromDate.getTime() <= now() && now() < certificate.validToDate.getTime();
      if (!certificate.verify(issuer.publicKey) || !current) return undefined;
      return /^CN=(.*)$/m.exec(certificate.subject)?.[1];
    }
    return request.headers.authorization === `Bearer ${bootstrapToken}` ? 'system:bootstrap:abcdef' : undefined;
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    if (state === 'hangs') return;
    const user = state === 'down' ? undefined : whoIs(request);
    calls.push(`${request.method} ${user ?? '-'}`);
    if (state === 'down') return void request.socket.destroy();
    if (user === undefined) {
      response.writeHead(401, { 'content-type': 'application/json' });
      return void response.end(JSON.stringify({ kind: 'Status', code: 401, message: 'Unauthorized' }));
    }
    const { authorization: _, ...headers } = request.headers;
    const outgoing = httpRequest(
      `${target}${request.url}`,
      { method: request.method!, headers: { ...headers, 'impersonate-user': user } },
      (incoming) => {
        response.writeHead(incoming.statusCode ?? 500, incoming.headers);
        response.flushHeaders();
        incoming.pipe(response);
      },
    );
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    request.pipe(outgoing);
  }

  const server = createServer(
    {
      key: serving.keyPem,
      cert: serving.certificatePem,
      requestCert: true,
      // Judged above: OpenSSL knows only this machine's time.
      rejectUnauthorized: false,
      ca: readFileSync(clientCaFile),
    },
    answer,
  );
  await new Promise<void>((ready) => {
    server.listen(0, '127.0.0.1', ready);
  });
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caFile,
    calls,
    state(next) {
      state = next;
      if (next !== 'up') server.closeAllConnections();
    },
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
