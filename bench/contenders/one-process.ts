/**
 * The relay and the sign function's code in one process, with a function call between them:
 * `node bench/contenders/one-process.ts KUBECONFIG DIR`. It exists only for the bench: the difference to relay and sign server is
 * what HTTP and the second process cost. DIR holds the ledger, synced at each write as the dev server's, and `ca.crt`.
 */
import { randomBytes, X509Certificate } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import { embeddedSigner } from '../../adapters/embedded/signer.ts';
import { connectKubernetes } from '../../adapters/kubernetes/api.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import { defaultCluster } from '../../core/configuration/parse.ts';
import { issue } from '../../core/issue.ts';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { SignAnswer, SigningEndpoint } from '../../core/ports/signing-endpoint.ts';
import { defaultConcurrency, defaultSignerNames } from '../../lambdas/watch-relay/settings/settings.ts';
import { defaultInFlightPerRequester, signersFromFlags } from '../../lambdas/watch-relay/settings/signers.ts';
import { createProcessLog } from '../../lambdas/watch-relay/runtime/process-log.ts';
import { createRelay } from '../../lambdas/watch-relay/relay.ts';
import { systemClock } from '../../lambdas/watch-relay/runtime/system-clock.ts';
import { createTestAuthority } from '../../test/harness/x509/test-certificates.ts';

const [kubeconfig, folder] = process.argv.slice(2);
if (kubeconfig === undefined || folder === undefined) throw new Error('usage: one-process.ts KUBECONFIG DIR');

mkdirSync(folder, { recursive: true });
const { certificatePem, keyPem } = await createTestAuthority('bench one-process ca');
const certificate = new Uint8Array(new X509Certificate(certificatePem).raw);
const authority: Authority = { name: 'ca', certificate, intermediates: [], signer: embeddedSigner(keyPem) };
const cluster = defaultCluster('bench', { maxTtlSeconds: 86_400 });
const { ledger, close } = openEmbeddedLedger(join(folder, 'ledger.sqlite'));
const { store: locks } = openEmbeddedAttestations(join(folder, 'attestations.sqlite'));

const endpoint: SigningEndpoint = {
  async sign(object): Promise<SignAnswer> {
    const decoded = decodeRequestObject(object);
    if (!decoded.ok) return { kind: 'invalid' };
    const ports = { ledger, locks, authority: async () => authority, now: () => Date.now(), randomBytes };
    const outcome = await issue(decoded.value, cluster, ports);
    return outcome.kind === 'ignored' || outcome.kind === 'invalid' ? { kind: outcome.kind } : outcome;
  },
  // The requests of these phases are approved already.
  attest: () => Promise.reject(new Error('nothing is attested')),
};
const kubernetes = connectKubernetes({ kind: 'kubeconfig', path: kubeconfig });
const relay = createRelay(
  {
    ...signersFromFlags(defaultSignerNames, defaultInFlightPerRequester),
    concurrency: defaultConcurrency,
    graceMilliseconds: 5_000,
    identity: 'bench',
  },
  { api: kubernetes.requests, endpoint, clock: systemClock, random: Math.random, log: createProcessLog('info') },
);

const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());
writeFileSync(join(folder, 'ca.crt'), `${certificatePem}\n`);
await relay.run(stop.signal);
kubernetes.close();
close();
process.exit(0);
