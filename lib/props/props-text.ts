/**
 * Writes the properties of a cluster as TypeScript, from the schema of countersign.yaml, so that both have one meaning. What is
 * required of a whole cluster is required here; a file may spread a cluster over `defaults` and the cluster itself.
 */
import { configurationSchema } from '../../core/configuration/parse.ts';

/** The part of JSON Schema that the schema of countersign.yaml uses. */
interface Schema {
  readonly description?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
}

/** The interface of each map of a cluster, by its path, and what it describes. */
const interfaces: Readonly<Record<string, readonly [name: string, text: string]>> = {
  '': [
    'ClusterProps',
    'A cluster: what is signed, who may call, and how it runs on AWS. The keys of countersign.yaml.',
  ],
  'cas.*': ['CaProps', 'A CA.'],
  'cas.*.subject': ['CaSubject', 'The name of a CA.'],
  'profiles.*': ['ProfileProps', 'What one signer permits.'],
  'profiles.*.requester': ['ProfileRequester', 'Who may ask for certificates of a signer.'],
  'profiles.*.attestation': ['ProfileAttestation', 'The proof of the machine that a signer needs.'],
  'profiles.*.subject': ['ProfileSubject', 'The names that a certificate may hold.'],
  'profiles.*.usages': ['ProfileUsages', 'Key usages of a signer.'],
  'profiles.*.sans': ['ProfileSans', 'Subject alternative names of a signer.'],
  attestation: ['ClusterAttestation', 'Which machines may join.'],
  'attestation.aws': ['AwsAttestation', 'Which instances of EC2 may join.'],
  'attestation.aws.accounts.*': ['AwsAccount', 'An account whose instances may join.'],
  'attestation.aws.instance': ['AwsInstance', 'Properties that EC2 must report for an instance.'],
  'attestation.tpm': ['TpmAttestation', 'Which machines with a TPM may join.'],
  'attestation.x509': ['X509Attestation', 'Which machines with a certificate of a PKI may join.'],
  'attestation.x509.rules.*': ['X509Rule', 'Which certificates are machines, and what these are called.'],
  'attestation.gce': ['GceAttestation', 'Which VMs of Google may join.'],
  'attestation.gce.federation': ['GceFederation', 'How the attest function logs in to Google.'],
  'attestation.gce-vtpm': ['GceVtpmAttestation', 'Which Shielded VMs of Google may join.'],
  'attestation.gce-vtpm.federation': ['GoogleFederation', 'How the attest function logs in to Google.'],
  'attestation.gce-vtpm.instances.*': ['PinnedVm', 'A VM whose signing key the operator vouches for.'],
  'attestation.clusterApi': ['ClusterApiReference', 'The Cluster object of Cluster API whose Machines may join.'],
  'profiles.*.attestation.pcrs': ['PcrPolicy', 'What the platform configuration registers of a TPM must hold.'],
  kubeadm: ['KubeadmProps', 'The certificates of kubeadm’s control plane that operators may have signed.'],
  'kubeadm.cas': ['KubeadmCas', 'The CAs by what they sign for kubeadm’s control plane.'],
  access: ['ClusterAccess', 'Who may call.'],
  'access.iam': ['IamAccess', 'Callers with AWS credentials.'],
  'access.jwt': ['JwtAccess', 'Callers with a service account token.'],
  // Both have the same keys.
  'access.iam.domain': ['DomainProps', 'A DNS name of the operator’s for an HTTP API.'],
  'access.jwt.domain': ['DomainProps', 'A DNS name of the operator’s for an HTTP API.'],
  limits: ['ClusterLimits', 'How much the cluster may use.'],
  'limits.throttle': ['ThrottleProps', 'How many calls an endpoint lets through.'],
  alarms: ['ClusterAlarms', 'When alarms are raised, and where they are sent.'],
  keys: ['ClusterKeys', 'Who administers the CA keys.'],
  logs: ['ClusterLogs', 'Logs of functions and endpoints.'],
  aws: ['ClusterPlace', 'Where the stacks are.'],
};

/** What is required although its description does not say so in a sentence of its own. */
const requiredMaps = new Set([
  'cas',
  'profiles',
  'access',
  'cas.*.subject',
  'kubeadm.cas',
  'kubeadm.nodes',
  'access.iam.domain.name',
  'access.jwt.domain.name',
]);

const ofProperties = 'the defaults of its properties';

/** Defaults that differ from those of the file, or that the schema has in no form of its own. */
const ownDefaults: Readonly<Record<string, string>> = {
  'profiles.*.ca': 'the only CA',
  'profiles.*.subject': ofProperties,
  'profiles.*.subject.organizations': 'as for `commonNames`',
  'profiles.*.sans': ofProperties,
  'attestation.aws.instance': ofProperties,
  'attestation.clusterApi': ofProperties,
  limits: ofProperties,
  'limits.throttle': `${ofProperties}, where the endpoint can throttle`,
  alarms: ofProperties,
  keys: ofProperties,
  logs: ofProperties,
  aws: ofProperties,
  'aws.account': 'that of the stack',
  'aws.region': 'that of the stack',
};

/** Long lists of values that several properties have. */
const lists: Readonly<Record<string, string>> = {
  'profiles.*.usages.allowed': 'KeyUsage',
  'profiles.*.usages.required': 'KeyUsage',
};

const head = '// Written by `npm run api` from the schema of countersign.yaml. Do not edit.\n';

/** The files, by name. Each attestation provider has its own, so that no file is long. */
export function propsFiles(): ReadonlyMap<string, string> {
  const { properties: { clusters } = {} } = configurationSchema() as Schema;
  const cluster = clusters?.additionalProperties;
  if (typeof cluster !== 'object') throw new Error('the schema has no clusters');
  const written = new Map<string, string>();
  writeInterface('', cluster, written);
  const parts = Object.groupBy(written, ([path]) => fileOf(path));
  const usages = cluster.properties?.['profiles']?.additionalProperties;
  const keyUsage =
    typeof usages === 'object' ? usages.properties?.['usages']?.properties?.['allowed']?.items : undefined;
  if (keyUsage === undefined) throw new Error('the schema has no usages');
  const contents = (part: string) => (parts[part] ?? []).map(([, text]) => text).join('\n');
  const names = (part: string, only: readonly string[]) => `import type { ${only.join(', ')} } from './${part}.ts';`;
  const providers = Object.keys(parts).filter((part) => part.startsWith(providerFolder));
  const ofProviders = providers.map((part) => names(part, [interfaces[pathOf(part)]?.[0] ?? '']));
  const own = ['ClusterAccess', 'ClusterAlarms', 'ClusterKeys', 'ClusterLimits', 'ClusterLogs', 'ClusterPlace'];
  const imports = [
    names('attestation-props', ['ClusterAttestation']),
    names('deployment-props', own),
    names('profile-props', ['ProfileProps']),
  ];
  return new Map([
    ['cluster-props.ts', `${head}${imports.join('\n')}\n\n${contents('cluster-props')}`],
    [
      'profile-props.ts',
      `${head}${names('attestation-props', ['ProfileAttestation'])}\n\n/** Usages, in the words of the Kubernetes API. */\nexport type KeyUsage = ${type('', keyUsage)};\n\n${contents('profile-props')}`,
    ],
    ['attestation-props.ts', `${head}${ofProviders.join('\n')}\n\n${contents('attestation-props')}`],
    ...providers.map((part) => [`${part}.ts`, `${head}\n${contents(part)}`] as const),
    ['deployment-props.ts', `${head}\n${contents('deployment-props')}`],
  ]);
}

const providerFolder = 'providers/';

/** Without its ending. */
function fileOf(path: string): string {
  const [first = '', provider] = path.split('.');
  if (first === '' || first === 'cas' || first === 'kubeadm') return 'cluster-props';
  if (path.startsWith('profiles.*.attestation')) return 'attestation-props';
  if (first === 'profiles') return 'profile-props';
  if (first !== 'attestation') return 'deployment-props';
  return provider === undefined || provider === 'clusterApi' ? 'attestation-props' : `${providerFolder}${provider}`;
}

/** The path of the provider with this file. */
function pathOf(part: string): string {
  return `attestation.${part.slice(providerFolder.length)}`;
}

function writeInterface(path: string, { properties = {} }: Schema, written: Map<string, string>): void {
  const [name, text] = interfaces[path] ?? [];
  if (name === undefined || text === undefined) throw new Error(`${path} of countersign.yaml has no interface`);
  const members = Object.entries(properties).map(([key, schema]) =>
    member(path === '' ? key : `${path}.${key}`, schema),
  );
  const named = path === '' ? [memberText('name', nameText, undefined, 'string')] : [];
  const contents = `/** ${text} */\nexport interface ${name} {\n${[...named, ...members].join('\n\n')}\n}\n`;
  if ([...written.values()].includes(contents)) return;
  written.set(path, contents);
  for (const [key, schema] of Object.entries(properties)) {
    const below = path === '' ? key : `${path}.${key}`;
    const { additionalProperties: each, items } = schema;
    if (items?.properties !== undefined) writeInterface(`${below}.*`, items, written);
    if (schema.properties !== undefined) writeInterface(below, schema, written);
    else if (typeof each === 'object' && each.properties !== undefined) writeInterface(`${below}.*`, each, written);
  }
}

const nameText =
  'Name of the cluster, a DNS label of at most 40 characters. It is part of the URL and of the names of functions and of the caller role.';

function member(path: string, schema: Schema): string {
  const { text, initial } = sentences(schema);
  const own = ownDefaults[path];
  const required = requiredMaps.has(path) || isRequired(schema);
  return memberText(
    path.split('.').at(-1) ?? '',
    text,
    required ? undefined : (own ?? initial ?? 'none'),
    type(path, schema),
  );
}

function isRequired({ description = '' }: Schema): boolean {
  return /\bRequired(\.|, since)/.test(description);
}

/** The description without what the property says by itself, and its default. */
function sentences({ description = '', default: initial }: Schema): {
  readonly text: string;
  readonly initial?: string;
} {
  const written = /(?:^| )Default: (.+?)\.(?= [A-Z`]|$)/.exec(description);
  const text = (written === null ? description : description.replace(written[0], '')).replace(/ Required\.(?= |$)/, '');
  if (written?.[1] !== undefined) return { text, initial: written[1] };
  if (initial === undefined) return { text };
  const value = Array.isArray(initial) ? initial.map(String).join(', ') : JSON.stringify(initial);
  return { text, initial: value.replace(/^"(.*)"$/, '$1') };
}

function memberText(key: string, text: string, initial: string | undefined, of: string): string {
  const lines = [...wrapped(text), ...(initial === undefined ? [] : ['', ...wrapped(`@default - ${initial}`)])];
  const comment = lines.map((line) => `   *${line === '' ? '' : ` ${line}`}`).join('\n');
  const property = /^\w+$/.test(key) ? key : `'${key}'`;
  return `  /**\n${comment}\n   */\n  readonly ${property}${initial === undefined ? '' : '?'}: ${of};`;
}

function wrapped(text: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line.length + word.length > 110) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}

function type(path: string, schema: Schema): string {
  const { anyOf, enum: values, items, properties, additionalProperties: each } = schema;
  if (properties !== undefined) return interfaces[path]?.[0] ?? '';
  if (schema.const !== undefined) return literal(schema.const);
  if (anyOf !== undefined) return anyOf.map((one) => type(path, one)).join(' | ');
  // The days of CloudWatch Logs: `RetentionDays` of CDK is a number.
  if (values?.every((value) => typeof value === 'number') === true) return 'number';
  if (values !== undefined) return values.map(literal).join(' | ');
  if (items !== undefined) {
    const item = lists[path] ?? type(items.properties === undefined ? path : `${path}.*`, items);
    return item.includes(' ') ? `readonly (${item})[]` : `readonly ${item}[]`;
  }
  if (typeof each === 'object') return `Readonly<Record<string, ${type(`${path}.*`, each)}>>`;
  const known = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean' }[schema.type ?? ''];
  if (known === undefined) throw new Error(`${path} has an unknown type`);
  return known;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}
