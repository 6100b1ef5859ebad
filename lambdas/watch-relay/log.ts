/** Structured log lines; pino fits. Never request contents, certificates or evidence: names, codes and counts. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  /** Somebody has to do something: docs/watch-relay.md has a line for each. */
  error(fields: object, message: string): void;
}
