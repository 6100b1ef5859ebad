import { constants, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { SecureContextOptions } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import type { WebhookSettings } from '../settings/webhook-settings.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';

/** cert-manager renews days before the end. Polling, because replaced symbolic links notify no file watcher. */
const pollMilliseconds = 10_000;

export interface KeptFiles {
  current(): SecureContextOptions;
  onChange(use: (context: SecureContextOptions) => void): void;
  close(): void;
}

/**
 * The server's certificate, key and CA as the files contain them now. Throws a sentence if they cannot be used at the
 * start; later the last usable ones stay in use, and the problem is logged.
 */
export function keepFiles(settings: WebhookSettings, clock: Clock, log: Log): KeptFiles {
  let current = load(settings);
  let complaint = '';
  let use = (_context: SecureContextOptions): void => {};
  let cancel = clock.after(pollMilliseconds, poll);

  function poll(): void {
    cancel = clock.after(pollMilliseconds, poll);
    try {
      const next = load(settings);
      complaint = '';
      if (isDeepStrictEqual(next, current)) return;
      use(next);
      current = next;
      log.info({}, 'webhook: new certificate in use');
    } catch (error) {
      const detail = errorMessage(error);
      // Logged once: at one poll only half of the files may have been replaced.
      if (detail !== complaint) log.error({ detail }, 'webhook: new certificate cannot be used');
      complaint = detail;
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
    // Without it Node would trust the system's CAs, which certify any client.
    ...(client === undefined ? {} : { ca: read('--webhook-client-ca', client.caFile) }),
  };
  must('--webhook-cert, --webhook-key', () => createSecureContext(context));
  // With a CA file that contains no certificates Node silently refuses every client.
  if (typeof context.ca === 'string') must('--webhook-client-ca', () => new X509Certificate(context.ca as string));
  return context;
}

function must(flags: string, attempt: () => unknown): void {
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
