/**
 * What kube-apiserver does with an AuthorizationConfiguration about revoked certificates, and no more: it calls the webhook only for a
 * certificate that the file names, obeys a denial, and refuses what gets no answer (`failurePolicy: Deny`). Everything else is permitted.
 * test/suites/control-plane/revocation asks the real one.
 */
import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import { fingerprintsIn } from '../../core/revocation/authorization-configuration.ts';
import type { WebhookProxy } from '../../lambdas/watch-relay/webhook/posted.ts';

export interface ApiAnswer {
  readonly status: 200 | 403 | 500;
  readonly message: string;
}

export interface ApiServer {
  /** `configuration`: the content of its file, as of now. */
  readonly configure: (configuration: unknown) => void;
  /** How often it called the webhook. */
  readonly calls: () => number;
  /** The answer to a request with this client certificate. `fingerprint`: SHA-256 of its DER, lower-case hex. */
  readonly ask: (fingerprint: string, user: string) => Promise<ApiAnswer>;
}

export function createApiServer(webhook: WebhookProxy, path: string, signal: AbortSignal): ApiServer {
  let listed: ReadonlySet<string> = new Set();
  let calls = 0;
  return {
    configure: (configuration) => {
      listed = fingerprintsIn(configuration);
    },
    calls: () => calls,
    async ask(fingerprint, user) {
      if (!listed.has(fingerprint)) return { status: 200, message: '' };
      calls += 1;
      const extra = { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] };
      const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { user, extra } };
      const body = Buffer.from(JSON.stringify(review));
      const answer = await webhook({ method: 'POST', path, contentType: 'application/json', body }, signal);
      if (answer.statusCode !== 200) return { status: 500, message: 'the webhook gave no answer' };
      const { denied, reason } = objectOf(parsedObject(answer.body)?.['status']);
      return denied === true ? { status: 403, message: String(reason) } : { status: 200, message: '' };
    },
  };
}
