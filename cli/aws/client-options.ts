/** How long an operator waits for an AWS service. */

/** Options of every AWS client of a command. `requestTimeout`: milliseconds for one attempt. */
export function clientOptions(requestTimeout = 15_000) {
  return {
    maxAttempts: 3,
    requestHandler: { connectionTimeout: 5_000, requestTimeout, throwOnRequestTimeout: true },
  };
}

/** A scan of a large table takes seconds. */
export const scanTimeout = 30_000;
