/**
 * Environment variables that could make the AWS SDK or Node.js call or trust an endpoint that is not AWS's. A function with
 * one of them refuses to serve.
 *
 * This stops only forgotten or changed variables. A principal that may change a function's configuration can also add
 * a layer, and one that may change its code needs no variable: SECURITY.md.
 */

/** Set by esbuild in bundles for the emulators of the tests, and in no others (lib/functions.ts). */
declare const __COUNTERSIGN_EMULATED_AWS__: string | undefined;

export function madeForEmulatedAws(): boolean {
  return typeof __COUNTERSIGN_EMULATED_AWS__ !== 'undefined';
}

type Environment = Readonly<Record<string, string | undefined>>;

/** From these the SDK reads endpoints, proxies and profiles, and Node.js reads certificates and code to run first. */
const redirecting: readonly RegExp[] = [
  // https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
  /^AWS_ENDPOINT_URL(_|$)/,
  // A profile can name endpoints and credentials; with AWS_PROFILE the SDK ignores Lambda's own credentials.
  /^AWS_(PROFILE|DEFAULT_PROFILE|CONFIG_FILE|SHARED_CREDENTIALS_FILE)$/,
  // https://nodejs.org/api/cli.html#environment-variables
  /^NODE_(OPTIONS|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|USE_ENV_PROXY|USE_SYSTEM_CA)$/,
  // https://docs.aws.amazon.com/lambda/latest/dg/runtimes-modify.html
  /^AWS_LAMBDA_EXEC_WRAPPER$/,
];

const harmless: Environment = {
  // lib/functions.ts sets it for bundles with source maps.
  NODE_OPTIONS: '--enable-source-maps',
  // Amazon's CAs in the image of the runtime. Older runtimes set the variable.
  NODE_EXTRA_CA_CERTS: '/var/runtime/ca-cert.pem',
};

/** A sentence for each variable; never its value. Empty variables count: some readers obey them. */
export function redirects(environment: Environment, emulated = madeForEmulatedAws()): readonly string[] {
  if (emulated) return [];
  return Object.entries(environment)
    .filter(([name, value]) => value !== undefined && redirecting.some((pattern) => pattern.test(name)))
    .filter(([name, value]) => harmless[name] !== value)
    .map(([name]) => `${name} is set, which could lead this function's calls away from AWS`);
}
