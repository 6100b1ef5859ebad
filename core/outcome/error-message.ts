export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What parseArgs of node:util threw, without its advice to pass an unknown option as an argument. */
export function usageMessage(error: unknown): string {
  return errorMessage(error).replace(/^Unknown option '([^']*)'.*$/s, 'there is no option $1');
}

/** The thrown value itself if it is an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
