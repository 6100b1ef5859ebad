/** The command line of `npm run conformance`. */
import { parseArgs } from 'node:util';
import { checks } from './checks.ts';
import { baseProblem, defaults } from './conformance.ts';
import { signerNames } from './questions.ts';
import type { SignerName } from './questions.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export const helpText = `Checks from outside whether an endpoint follows the webhook protocol and docs/signing-api.md.

Usage: npm run conformance -- URL [options]

  URL                    of one cluster: https://…/v1/clusters/<name>; /sign and the other paths are added

  --header 'NAME: VALUE' send this header with every call; repeat it for more
  --token-file FILE      send 'Authorization: Bearer …', read from the file for each call
  --sigv4                sign every call for AWS IAM, with the credentials that the AWS SDK finds (AWS_PROFILE, …)
  --role ARN             assume this role first, for example the stack's CallerRoleArn; implies --sigv4
  --region REGION        for --sigv4 (default: AWS_REGION, or the region in the URL's host)
  --host-header HOST     replaces the URL's host in the Host header
  --connect HOST:PORT    connect to this address instead of the URL's
  --signer NAME          the endpoint must serve this signer; repeat it for more (default: those of the three that it serves)
                         ${signerNames.join('\n                         ')}
  --username NAME        the requester for kube-apiserver-client (default: ${defaults.requester.username})
  --group NAME           its group; repeat it for more (default: ${defaults.requester.groups.join(', ')})
  --only CHECK           run this check and those that it needs; repeat it for more
  --skip CHECK           do not run this check; repeat it for more
  --concurrent N         simultaneous deliveries of one request, 2 to 100 (default: ${defaults.concurrent})
  --timeout SECONDS      for the whole run (default: ${defaults.timeoutMilliseconds / 1_000})
  -o, --output table|json
  --list                 print the checks, and where each rule is from
  --help

Examples:
  npm run dev -- --port 8443                      (in another terminal)
  npm run conformance -- http://127.0.0.1:8443/v1/clusters/demo
  npm run conformance -- https://abc.execute-api.eu-central-1.amazonaws.com/v1/clusters/prod --role arn:aws:iam::111122223333:role/countersign-prod-caller
  npm run conformance -- https://def.execute-api.eu-central-1.amazonaws.com/v1/clusters/prod --token-file ./token
  npm run conformance -- http://x.lambda-url.us-east-1.localhost:4566/v1/clusters/demo --connect 127.0.0.1:4566

The endpoint signs some ten certificates, each valid for ten minutes (two for up to an hour), for names that begin with
countersign-conformance. Their keys are never stored. Each certificate leaves a record in the endpoint's ledger.

Exit codes: 0 all checks passed, 1 a check failed, 2 usage, or the endpoint cannot be reached or refuses the caller.
More: docs/conformance.md
`;

export interface Settings {
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tokenFile?: string;
  readonly sigv4: boolean;
  readonly region?: string;
  readonly roleArn?: string;
  readonly hostHeader?: string;
  readonly connect?: { readonly host: string; readonly port: number };
  readonly signers?: readonly SignerName[];
  readonly requester: { readonly username: string; readonly groups: readonly string[] };
  readonly only?: readonly string[];
  readonly skip: readonly string[];
  readonly concurrent: number;
  readonly timeoutMilliseconds: number;
  readonly output: 'table' | 'json';
}

export type Parsed =
  | { readonly kind: 'run'; readonly settings: Settings }
  | { readonly kind: 'help' | 'list' }
  | { readonly kind: 'wrong'; readonly message: string };

const options = {
  header: { type: 'string', multiple: true },
  'token-file': { type: 'string' },
  sigv4: { type: 'boolean', default: false },
  role: { type: 'string' },
  region: { type: 'string' },
  'host-header': { type: 'string' },
  connect: { type: 'string' },
  signer: { type: 'string', multiple: true },
  username: { type: 'string', default: defaults.requester.username },
  group: { type: 'string', multiple: true },
  only: { type: 'string', multiple: true },
  skip: { type: 'string', multiple: true },
  concurrent: { type: 'string', default: String(defaults.concurrent) },
  timeout: { type: 'string', default: String(defaults.timeoutMilliseconds / 1_000) },
  output: { type: 'string', short: 'o', default: 'table' },
  list: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

export function parseOptions(argv: readonly string[]): Parsed {
  let parsed;
  try {
    parsed = parseArgs({ args: [...argv], strict: true, allowPositionals: true, options });
  } catch (error) {
    return wrong(errorMessage(error));
  }
  const { values: flags, positionals } = parsed;
  if (flags.help) return { kind: 'help' };
  if (flags.list) return { kind: 'list' };

  const [base, ...more] = positionals;
  if (base === undefined) return wrong('the URL of a cluster is missing: https://…/v1/clusters/<name>');
  if (more.length > 0) return wrong(`only one URL is allowed; ${more[0]} is another argument`);
  const bad = baseProblem(base);
  if (bad !== undefined) return wrong(bad);

  const headers = headersOf(flags.header ?? []);
  if (headers === undefined) return wrong("--header: write it as 'Name: value'");
  const tokenFile = flags['token-file'];
  const sigv4 = flags.sigv4 || flags.role !== undefined;
  const ways = [Object.keys(headers).some(isAuthorization), tokenFile !== undefined, sigv4];
  if (ways.filter(Boolean).length > 1) return wrong('choose one of --header Authorization, --token-file and --sigv4');
  const connect = flags.connect === undefined ? undefined : addressOf(flags.connect);
  if (connect === 'wrong') return wrong(`--connect ${flags.connect}: not HOST:PORT`);
  if (ways.includes(true) && overOpenNetwork(base, connect?.host))
    return wrong('credentials are sent only over https, or to this machine');

  const signer = flags.signer?.find((name) => !isSigner(name));
  if (signer !== undefined) return wrong(`--signer ${signer}: not one of ${signerNames.join(', ')}`);
  const unknown = [...(flags.only ?? []), ...(flags.skip ?? [])].find((id) => !checks.some((check) => check.id === id));
  if (unknown !== undefined) return wrong(`no check ${unknown}; --list shows all checks`);
  const concurrent = Number(flags.concurrent);
  if (!Number.isInteger(concurrent) || concurrent < 2 || concurrent > 100)
    return wrong(`--concurrent ${flags.concurrent}: not a number from 2 to 100`);
  const seconds = Number(flags.timeout);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 3_600)
    return wrong(`--timeout ${flags.timeout}: not a number of seconds from 1 to 3600`);
  if (flags.output !== 'table' && flags.output !== 'json') return wrong(`-o ${flags.output}: table or json`);

  const hostHeader = flags['host-header'];
  return {
    kind: 'run',
    settings: {
      base,
      headers,
      sigv4,
      requester: { username: flags.username, groups: flags.group ?? defaults.requester.groups },
      skip: flags.skip ?? [],
      concurrent,
      timeoutMilliseconds: seconds * 1_000,
      output: flags.output,
      ...(tokenFile === undefined ? {} : { tokenFile }),
      ...(flags.region === undefined ? {} : { region: flags.region }),
      ...(flags.role === undefined ? {} : { roleArn: flags.role }),
      ...(hostHeader === undefined ? {} : { hostHeader }),
      ...(connect === undefined ? {} : { connect }),
      ...(flags.signer === undefined ? {} : { signers: flags.signer.filter(isSigner) }),
      ...(flags.only === undefined ? {} : { only: flags.only }),
    },
  };
}

function wrong(message: string): Parsed {
  return { kind: 'wrong', message };
}

function isSigner(name: string): name is SignerName {
  return (signerNames as readonly string[]).includes(name);
}

const isAuthorization = (name: string): boolean => name === 'authorization';

function headersOf(lines: readonly string[]): Readonly<Record<string, string>> | undefined {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const [, name, value] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+): *(\S.*)$/.exec(line) ?? [];
    // The message does not show the line: it may be a credential.
    if (name === undefined || value === undefined) return undefined;
    headers[name.toLowerCase()] = value;
  }
  return headers;
}

function addressOf(text: string): { readonly host: string; readonly port: number } | 'wrong' {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) return 'wrong';
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

/** Plain http to another machine, where every router on the way can read credentials. kubectl and client-go refuse it too. */
function overOpenNetwork(base: string, connectHost: string | undefined): boolean {
  const url = new URL(base);
  const host = connectHost ?? url.hostname.replace(/^\[|\]$/g, '');
  return url.protocol === 'http:' && !/^(127\.\d+\.\d+\.\d+|::1|localhost|.+\.localhost)$/.test(host);
}
