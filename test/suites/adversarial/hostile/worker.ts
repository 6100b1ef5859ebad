/**
 * One sign handler in a process of its own, used for case after case: what a case leaves behind (a stuck lock, a grown
 * table, a changed prototype) meets the next one, as in a warm Lambda.
 */
import { X509Certificate, randomBytes } from 'node:crypto';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import { embeddedSigner } from '../../../../adapters/embedded/signer.ts';
import type { HttpAnswer } from '../../../../adapters/lambda/http.ts';
import { loopbackCaller } from '../../../../dev/serve/loopback-caller.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { decodePem } from '../../../../core/encoding/pem.ts';
import { noCrls } from '../../../harness/stack/no-crls.ts';
import { createSignHandler } from '../../../../lambdas/sign/handler.ts';
import { clusterName, signEvent, approvedObject } from '../../../corpus/hostile/event.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import type { FromWorker, Plant, StartWorker, ToWorker } from './messages.ts';
import { noLocks } from '../../../harness/kubernetes/no-locks.ts';

let handler: ReturnType<typeof createSignHandler> | undefined;

process.on('message', (message: StartWorker | ToWorker) => {
  if ('caKey' in message) {
    handler = start(message);
    process.send?.('ready');
    return;
  }
  // A rejection here is a crash on purpose: the runner must see it.
  void answer(message).then((reply) => process.send?.(reply));
});
// Without its parent process there is no receiver for an answer.
process.on('disconnect', () => process.exit());

function start({ caCertificate, caKey }: StartWorker): ReturnType<typeof createSignHandler> {
  const cluster = defaultCluster(clusterName, { maxTtlSeconds: 86_400 });
  const { ledger } = openEmbeddedLedger(':memory:');
  const authority = {
    name: 'ca',
    certificate: new Uint8Array(new X509Certificate(caCertificate).raw),
    intermediates: [],
    signer: embeddedSigner(caKey),
  };
  return createSignHandler({
    crls: () => noCrls,
    version: 'test',
    caller: loopbackCaller,
    cluster: (name) => (name === clusterName ? cluster : undefined),
    ledger: () => ledger,
    locks: () => noLocks,
    authority: () => Promise.resolve(authority),
    now: () => Date.now(),
    randomBytes,
    log: ({ error }) => {
      // The last words before a 5xx; the runner keeps the end of this stream.
      if (error !== undefined) process.stderr.write(`${JSON.stringify(error)}\n`);
    },
  });
}

async function answer({ event, request, plant }: ToWorker): Promise<FromWorker> {
  const memoryBefore = process.resourceUsage().maxRSS;
  const cpuBefore = process.cpuUsage();
  const { statusCode, headers, body } = plant === undefined ? await ask(event) : await planted(plant, event);
  const { user, system } = process.cpuUsage(cpuBefore);
  const grown = process.resourceUsage().maxRSS - memoryBefore;
  return {
    status: statusCode,
    headers,
    body,
    ...progress(request),
    cpuMilliseconds: (user + system) / 1000,
    grownMegabytes: grown / 1024,
  };
}

function ask(event: ToWorker['event']): Promise<HttpAnswer> {
  if (handler === undefined) throw new Error('not started');
  return handler(event);
}

function progress(request: Uint8Array | undefined): Pick<FromWorker, 'pastPem' | 'pastSignature'> {
  if (request === undefined) return { pastPem: false, pastSignature: false };
  const labels = ['PROVIDER', 'DATA'].map((name) => `KUBELET AUTHENTICATOR ATTESTATION ${name}`);
  return {
    pastPem: decodePem(request, ['CERTIFICATE REQUEST', ...labels]).ok,
    pastSignature: decodeRequest(request).ok,
  };
}

async function planted(plant: Plant, event: ToWorker['event']): Promise<HttpAnswer> {
  switch (plant) {
    case 'hang':
      for (;;);
    case 'wait':
      return new Promise(() => {});
    case 'exit':
      return process.exit(7);
    case 'throw':
      setImmediate(() => {
        throw new Error('planted');
      });
      return new Promise(() => {});
    case 'reject':
      throw new Error('planted');
    case 'heap':
      // In large pieces: of small ones the collector makes seconds of work before it gives up.
      for (const held: number[][] = []; ;) held.push(Array.from({ length: 100_000 }, () => held.length));
    case 'buffer':
      return { ...(await ask(event)), headers: { held: String(Buffer.alloc(400 * 1_048_576, 1).at(-1)) } };
    case 'server-error':
      return { ...(await ask(event)), statusCode: 500 };
    case 'busy':
      return { ...(await ask(event)), statusCode: 503 };
    case 'unnamed':
      return rewritten(await ask(event), (text) => text.replaceAll('RequestMalformed', 'SomethingElse'));
    case 'nameless':
      return rewritten(await ask(event), (text) => text.replace(/"details":\{[^}]*\}\]\},/, ''));
    case 'unmarked':
      return { ...(await ask(event)), headers: {} };
    case 'reflects':
      return rewritten(await ask(event), (text) => text.replaceAll(/"message":"/g, '"message":"\\u001b[31m'));
    case 'other-names': {
      const other = await certificateOfAnother();
      return rewritten(await ask(event), (text) => text.replace(/"certificate":"[^"]*"/, () => other));
    }
  }
}

function rewritten(answerOf: HttpAnswer, rewrite: (body: string) => string): HttpAnswer {
  return { ...answerOf, body: rewrite(answerOf.body) };
}

async function certificateOfAnother(): Promise<string> {
  const { bytes } = makeRequest({ subject: { CN: 'somebody-else' } });
  const { body } = await ask(signEvent(approvedObject({ uid: 'somebody-else', request: bytes })));
  return /"certificate":"[^"]*"/.exec(body)?.[0] ?? '';
}
