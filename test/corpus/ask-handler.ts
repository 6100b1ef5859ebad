/** The same question as in ask.ts, put to the sign handler over HTTP's own shapes, as a webhook client would. */
import { randomBytes } from 'node:crypto';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import { embeddedSigner } from '../../adapters/embedded/signer.ts';
import { loopbackCaller } from '../../dev/serve/loopback-caller.ts';
import type { RefusalCode } from '../../core/outcome/outcome.ts';
import { noCrls } from '../harness/stack/no-crls.ts';
import { createSignHandler } from '../../lambdas/sign/handler.ts';
import { clusterOf, leafOf } from './ask.ts';
import type { OurAnswer, OurSigner, SignerOptions } from './ask.ts';
import type { CorpusAuthority } from './authority.ts';
import { noLocks } from '../harness/kubernetes/no-locks.ts';
import { postedEvent } from '../harness/lambda/callers.ts';

interface Status {
  readonly message: string;
  readonly details?: { readonly causes: readonly { readonly reason: string }[] };
}

export function handlerSigner(authority: CorpusAuthority, options: SignerOptions): OurSigner {
  const { ledger, close } = openEmbeddedLedger(':memory:');
  const cluster = clusterOf(options);
  const signer = embeddedSigner(authority.key);
  const ours = { name: 'ca', certificate: authority.certificate, intermediates: [], signer };
  let clock = 0;
  let logged: unknown;
  const handler = createSignHandler({
    crls: () => noCrls,
    version: 'test',
    caller: loopbackCaller,
    cluster: (name) => (name === cluster.name ? cluster : undefined),
    ledger: () => ledger,
    locks: () => noLocks,
    authority: () => Promise.resolve(ours),
    now: () => clock,
    randomBytes: (count) => randomBytes(count),
    log: (entry) => {
      logged = entry;
    },
  });
  return {
    close,
    async ask(object, nowSeconds) {
      clock = nowSeconds * 1000;
      const event = postedEvent(cluster.name, 'sign', object, 'timeout=30s');
      const { statusCode, headers, body } = await handler(event);
      const said = `${statusCode} ${headers['x-countersign-outcome']}`;
      const answer = answers[said];
      // What is wrong is told to the operator alone.
      if (answer === undefined) throw new Error(`${said}: ${JSON.stringify(logged)}`);
      return answer(body);
    },
  };
}

/** By status and outcome together: a client may look at either. */
const answers: Readonly<Record<string, (body: string) => OurAnswer>> = {
  '200 issued': issued,
  '409 ignored': (body) => ({ kind: 'left alone', why: reasonsOf(body)[0] ?? '' }),
  '413 refused': refused,
  '422 refused': refused,
};

function issued(body: string): OurAnswer {
  const { status } = JSON.parse(body) as { readonly status: { readonly certificate: string } };
  const certificatePem = Buffer.from(status.certificate, 'base64').toString('latin1');
  return { kind: 'issued', certificate: leafOf(certificatePem), certificatePem };
}

function refused(body: string): OurAnswer {
  const { message } = JSON.parse(body) as Status;
  return { kind: 'refused', codes: reasonsOf(body) as RefusalCode[], message };
}

function reasonsOf(body: string): string[] {
  const { details } = JSON.parse(body) as Status;
  return (details?.causes ?? []).map(({ reason }) => reason);
}
