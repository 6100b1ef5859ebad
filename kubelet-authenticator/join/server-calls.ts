/** Calls to one server during discovery. A call is repeated until the server answers or the time is over. */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { success } from '../../core/outcome/result.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { refuse } from './discovery-result.ts';
import type { Discovery } from './discovery-result.ts';

export interface DiscoveryDependencies {
  /** `caPem` undefined: the server is not verified, so the call must not contain a secret. Rejects with Node's error if there is no answer. */
  call(server: string, caPem: string | undefined, call: DiscoveryCall): Promise<DiscoveryAnswer>;
  /** Progress, for the operator at the terminal. */
  log(line: string): void;
  sleep(milliseconds: number): Promise<void>;
  monotonic(): number;
  readonly patience: Patience;
}
export interface DiscoveryCall {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: JsonObject;
  readonly bearer?: string;
  readonly clientCertificate?: ClientCertificate;
}
/** PEM. */
export interface ClientCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
}
/** `text` is undefined if it is longer than `maxAnswerBytes`. */
export interface DiscoveryAnswer {
  readonly status: number;
  readonly text: string | undefined;
}

export interface Patience {
  /** How long to wait for a server that does not answer: control planes start at the same time as their nodes. */
  readonly reachMilliseconds: number;
  /** How long to wait for a missing signature: the bootstrap signer writes it a moment after the Secret is created. */
  readonly signatureMilliseconds: number;
  readonly intervalMilliseconds: number;
}
export const kubeadmPatience: Patience = {
  reachMilliseconds: 300_000,
  signatureMilliseconds: 30_000,
  intervalMilliseconds: 5_000,
};

/** etcd's limit for one object. A ConfigMap with the signatures of thousands of tokens is smaller. */
export const maxAnswerBytes = 1_572_864;

export interface Server {
  readonly url: string;
  /** The only CAs accepted for its TLS certificate. undefined: the server is not verified. */
  readonly trusted: string | undefined;
  readonly dependencies: DiscoveryDependencies;
}

/** Returns the first answer with a status below 500, other than 429. */
export async function callServer(
  { url, trusted, dependencies }: Server,
  call: DiscoveryCall,
): Promise<Discovery<DiscoveryAnswer>> {
  const { patience } = dependencies;
  const began = dependencies.monotonic();
  for (let logged = ''; ;) {
    let reason: string;
    try {
      const answer = await dependencies.call(url, trusted, call);
      if (answer.status < 500 && answer.status !== 429) return success(answer);
      reason = `HTTP ${answer.status}`;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // Another try would see the same certificate.
      if (trusted !== undefined && code !== undefined && tlsRefusals.test(code)) return notTrusted(url, code);
      reason = printable(message);
    }
    if (dependencies.monotonic() - began >= patience.reachMilliseconds)
      return refuse(
        'Unreachable',
        `${url} did not answer: ${reason}`,
        'check the address, and that no firewall blocks the connection',
      );
    if (reason !== logged) dependencies.log(`waiting for ${url}: ${reason}`);
    logged = reason;
    await dependencies.sleep(patience.intervalMilliseconds);
  }
}

/** Node's codes for OpenSSL's verdicts on a chain, and for its own check of the host name. */
const tlsRefusals =
  /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|CRL_|ERROR_IN_CERT|INVALID_(CA|PURPOSE)|PATH_LENGTH|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;

function notTrusted(url: string, code: string): Discovery<never> {
  const why =
    code === 'ERR_TLS_CERT_ALTNAME_INVALID'
      ? 'its certificate is of the right CA, but for other names or addresses'
      : code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID'
        ? 'its certificate is not valid at this time (check the clock of this machine)'
        : 'its certificate is not of the pinned CA: the connection may be intercepted';
  return refuse('ServerNotTrusted', `${url} cannot be trusted: ${why} (${code})`);
}
