import { writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { jsonAnswer } from '../../../../adapters/lambda/http.ts';
import type { HttpAnswer } from '../../../../adapters/lambda/http.ts';
import type { WebhookCall } from '../../../../lambdas/watch-relay/webhook/posted.ts';
import { serveWebhook } from '../../../../lambdas/watch-relay/webhook/server.ts';
import type { WebhookSettings } from '../../../../lambdas/watch-relay/settings/webhook-settings.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import {
  clientExtensions,
  createTestAuthority,
  loopbackServerExtensions,
} from '../../../harness/x509/test-certificates.ts';
import type { KeyAndCertificate, TestAuthority } from '../../../harness/x509/test-certificates.ts';
import { createVirtualClock } from '../../../harness/determinism/virtual-time.ts';

/* The webhook proxy's front, served on loopback with a proxy that only records: what the tests of callers and limits share. */

/** Removed when the process of this worker ends: files of the unit tests share it, and this module. */
const folder = temporaryFolder('webhook-server');
export const file = (name: string) => join(folder.path, name);
export const token = '0123456789abcdef0123456789abcdef';
const subject = 'O=example,CN=gcp-controller-manager';
export const path = '/v1/clusters/prod/sign';

export const authority = await createTestAuthority('servers');
export const clients = await createTestAuthority('clients');
const serving = await authority.issue({ subject: [{ CN: ['w'] }], extensions: loopbackServerExtensions() });
export const client = await clientOf(clients, 'gcp-controller-manager');
const closes: (() => Promise<void>)[] = [];

/** For each test of the calling file: the files that the flags name. The servers are closed after it. */
export function useWebhookFiles(): void {
  beforeEach(() => {
    writeFileSync(file('tls.crt'), serving.certificatePem);
    writeFileSync(file('tls.key'), serving.keyPem);
    writeFileSync(file('token'), `${token}\n`);
    writeFileSync(file('ca.crt'), clients.certificatePem);
  });
  afterEach(async () => {
    for (const close of closes.splice(0)) await close();
  });
}
export function clientOf(ca: TestAuthority, name: string, extensions = clientExtensions()): Promise<KeyAndCertificate> {
  return ca.issue({ subject: [{ O: ['example'] }, { CN: [name] }], extensions });
}

interface Ask {
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly login?: KeyAndCertificate;
}

export async function serve(ways: Pick<WebhookSettings, 'tokenFile' | 'client'>, concurrency = 2) {
  const clock = createVirtualClock();
  const calls: WebhookCall[] = [];
  const signals: AbortSignal[] = [];
  const outcomes: string[] = [];
  const logged: string[] = [];
  const waiting: (() => void)[] = [];
  let held = false;
  const log = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  let answer: HttpAnswer = jsonAnswer(200, { ok: true }, { 'x-countersign-outcome': 'issued' });
  const server = await serveWebhook(
    { address: { host: '127.0.0.1', port: 0 }, certFile: file('tls.crt'), keyFile: file('tls.key'), ...ways },
    async (call, signal) => {
      calls.push(call);
      signals.push(signal);
      if (held)
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          signal.addEventListener('abort', () => resolve());
        });
      return answer;
    },
    {
      concurrency,
      clock,
      log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
      answered: (outcome) => outcomes.push(outcome),
    },
  );
  closes.push(() => server.close(0).then(() => clock.advance(0)));

  function ask({ body = '{}', headers = {}, login }: Ask = {}) {
    return new Promise<{ status: number; outcome: unknown; headers: Record<string, unknown> }>((resolve, reject) => {
      const outgoing = httpsRequest({
        host: '127.0.0.1',
        port: server.address.port,
        path: `${path}?timeout=30s`,
        method: 'POST',
        agent: false,
        ca: authority.certificatePem,
        headers: { 'content-type': 'application/json', ...headers },
        ...(login === undefined ? {} : { cert: login.certificatePem, key: login.keyPem }),
      });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) => {
        incoming.resume();
        const { statusCode: status = 0, headers: got } = incoming;
        incoming.on('end', () => resolve({ status, outcome: got['x-countersign-outcome'], headers: got }));
      });
      outgoing.end(body);
    });
  }
  return {
    server,
    clock,
    calls,
    signals,
    outcomes,
    logged,
    ask,
    answerWith: (other: HttpAnswer) => void (answer = other),
    hold: () => (held = true),
    release: () => {
      held = false;
      for (const go of waiting.splice(0)) go();
    },
  };
}

export const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
export const byToken = () => ({ tokenFile: file('token') });
export const byCertificate = () => ({ client: { caFile: file('ca.crt'), subject } });
