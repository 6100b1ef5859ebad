import { constants, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { SecureContextOptions } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import type { WebhookSettings } from '../settings/webhook-settings.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';

/** Polling, since file watchers do not report replaced symbolic links. cert-manager renews days before the expiry. */
const pollMilliseconds = 10_000;

export interface TlsFiles {
  current(): SecureContextOptions;
  onChange(use: (context: SecureContextOptions) => void): void;
  close(): void;
}

/**
 * The server's certificate, key and client CA, read again when the files change. Throws a sentence if they cannot be used at
 * the start. If they cannot be used later, the last usable ones stay in use, and the problem is logged.
 */
export function watchTlsFiles(settings: WebhookSettings, clock: Clock, log: Log): TlsFiles {
  let current = load(settings);
  let lastProblem = '';
  let use = (_context: SecureContextOptions): void => {};
  let cancel = clock.after(pollMilliseconds, poll);

  function poll(): void {
    cancel = clock.after(pollMilliseconds, poll);
    try {
      const next = load(settings);
      lastProblem = '';
      if (isDeepStrictEqual(next, current)) return;
      use(next);
      current = next;
      log.info({}, 'webhook: new certificate in use');
    } catch (error) {
      const detail = errorMessage(error);
      // The same problem is logged once, not at each poll.
      if (detail !== lastProblem) log.error({ detail }, 'webhook: new certificate cannot be used');
      lastProblem = detail;
    }
  }

  return {
    current: () => current,
    onChange: (listener) => {
      use = listener;
    },
    close: () => cancel(),
  };
}

function load({ certFile, keyFile, client }: WebhookSettings): SecureContextOptions {
  const context: SecureContextOptions = {
    cert: read('--webhook-cert', certFile),
    key: read('--webhook-key', keyFile),
    minVersion: 'TLSv1.2',
    // A resumed session would keep the verification of an earlier handshake, even after the CA was replaced.
    secureOptions: constants.SSL_OP_NO_TICKET,
    // Without `ca` Node would trust the system's CAs, which certify any client.
    ...(client === undefined ? {} : { ca: read('--webhook-client-ca', client.caFile) }),
  };
  prefixed('--webhook-cert, --webhook-key', () => createSecureContext(context));
  // With a CA file that contains no certificates Node silently refuses every client.
  if (typeof context.ca === 'string') prefixed('--webhook-client-ca', () => new X509Certificate(context.ca as string));
  return context;
}

function prefixed(flags: string, attempt: () => unknown): void {
  try {
    attempt();
  } catch (error) {
    throw new Error(`${flags}: ${errorMessage(error)}`, { cause: error });
  }
}

function read(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`${flag} ${path}: ${(error as NodeJS.ErrnoException).code ?? 'unreadable'}`, { cause: error });
  }
}
