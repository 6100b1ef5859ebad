export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The thrown value itself if it is an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
