import { existsSync, readFileSync } from 'node:fs';

/** What the API server recorded of one request; the fields tests ask for. */
export interface AuditEvent {
  auditID: string;
  stage: 'ResponseStarted' | 'ResponseComplete' | 'Panic';
  verb: string;
  requestURI: string;
  user: { username: string; groups?: string[]; extra?: Record<string, string[]> };
  objectRef?: { resource: string; subresource?: string; namespace?: string; name?: string; apiGroup?: string };
  responseStatus?: { code: number; reason?: string };
  annotations?: Record<string, string>;
  requestReceivedTimestamp: string;
}

/** Every request of every user. Without RequestReceived: the stages that follow say the same and the result. */
export const AUDIT_POLICY = JSON.stringify({
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata' }],
});

/**
 * Events in the order written, of one user if named. A request still running, such as a watch, has only its
 * ResponseStarted event; a finished watch has two events with the same `auditID`.
 */
export function readAuditLog(path: string, filter: { user?: string } = {}): AuditEvent[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, 'utf8');
  const complete = text.slice(0, text.lastIndexOf('\n') + 1); // the server may be in the middle of a line
  return complete
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter((event) => filter.user === undefined || event.user.username === filter.user);
}
