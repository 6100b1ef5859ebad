/** `countersign token create`: a bootstrap token, and the command with which a machine joins. */
import { Option } from 'commander';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { ApiRefused } from '../../adapters/kubernetes/refused.ts';
import {
  defaultTokenGroup,
  generateBootstrapToken,
  groupProblem,
  parseBootstrapToken,
  secretOfToken,
  tokenSecretName,
  tokenText,
  tokenUsages,
  usageProblem,
} from '../../core/kubernetes/bootstrap-token.ts';
import type { TokenOwner, TokenRecord } from '../../core/kubernetes/bootstrap-token.ts';
import { providerNames } from '../../core/policy/signer-names.ts';
import { addClusterOptions, chooseCluster } from '../cluster/cluster-choice.ts';
import type { ClusterFlags } from '../cluster/cluster-choice.ts';
import { addClusterAccess, announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { evidenceFlags } from '../cluster/join-evidence.ts';
import { findJoinEndpoint, isEndpoint, unsignedClusterInfo, waitForSignature } from '../cluster/join-line.ts';
import { failIfRefused, isAllowed } from '../cluster/object-answers.ts';
import { formatOutput } from '../output/output.ts';
import { shownToken } from '../output/token-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { goDuration } from './token-reconcile.ts';

const namespace = 'kube-system';

interface CreateFlags extends ClusterAccessFlags, ClusterFlags {
  readonly ttl?: number;
  readonly usages: readonly string[];
  readonly groups: readonly string[];
  readonly description: string;
  readonly machine?: string;
  readonly pool?: string;
  readonly namespace: string;
  readonly audience?: string;
  readonly provider?: string;
  readonly attestationCertificate?: string;
  readonly attestationKey?: string;
  readonly server?: string;
  readonly output: string;
}

export function addCreate(token: CliCommand, io: Io): void {
  addClusterOptions(addClusterAccess(token.command('create')))
    .argument('[token]', 'the token to write (default: a random one)')
    .page('join.md')
    .description('create a bootstrap token and print the command with which a machine joins')
    .option(
      '--ttl <duration>',
      'lifetime, such as 30m or 24h; 0: no end (default: 24h; 1h with --machine or --pool)',
      goDuration,
    )
    .listOption('--usages <list>', 'what it may be used for', 'signing,authentication')
    .listOption('--groups <list>', 'groups of a client that authenticates with it', defaultTokenGroup)
    .option('--description <text>', 'a note for people', '')
    .addOption(
      new Option(
        '--machine <name>',
        'for one Machine of Cluster API: countersign token reconcile keeps it until the node is Ready',
      ).conflicts('pool'),
    )
    .option('--pool <name>', 'for a MachinePool: countersign token reconcile keeps it as long as the pool exists')
    .option('--namespace <name>', 'namespace of the Machine or MachinePool', 'default')
    .option('--audience <name>', 'the deployment that checks the machine’s evidence (default: as in countersign.yaml)')
    .addOption(
      new Option(
        '--provider <name>',
        'provider of the machine’s evidence (default: the one that the cluster takes; aws without countersign.yaml)',
      ).choices(providerNames),
    )
    .option('--attestation-certificate <file>', 'with --provider x509: the certificate, by its path on the machine')
    .option('--attestation-key <file>', 'with --provider x509: its key, by its path on the machine')
    .option(
      '--server <host:port>',
      'where machines find the API server (default: as in cluster-info, unless that is a loopback address)',
    )
    .formats('command', 'token', 'json', 'yaml')
    .notes(
      'If the signer demands attestation, the token alone gives no certificate: the machine must also prove its identity.',
      "Before it creates the token, the command checks cluster-info, the CA's hash, the address and the token's rights, so that",
      'it only prints a command that join accepts. -o token skips these checks.',
    )
    .examples(
      'countersign token create --config countersign.yaml --cluster prod',
      "countersign token create --audience 123456789012/eu-central-1/prod --ttl 30m --description 'rack 7'",
      'countersign token create --cluster prod --machine worker-3 --namespace fleet',
      'countersign token create --cluster prod --pool workers -o token',
    )
    .runs((text: string | undefined, flags: CreateFlags) => createToken(text, flags, io));
}

async function createToken(text: string | undefined, flags: CreateFlags, io: Io): Promise<void> {
  const owner = ownerOf(flags);
  const record = recordOf(text, flags, owner, io);
  const wantsCommand = flags.output !== 'token';
  const proof = wantsCommand ? await proofFlags(flags, io) : [];
  if (wantsCommand && record.usages.length < tokenUsages.length)
    throw new CommandFailure(
      exitCodes.usage,
      `no join command can be printed for a token without the usages ${tokenUsages.join(' and ')}`,
      '-o token creates it without a command',
    );
  if (flags.server !== undefined && !isEndpoint(flags.server))
    throw new CommandFailure(
      exitCodes.usage,
      '--server is <host>:<port>, such as 10.0.0.10:6443 or [2001:db8::1]:6443',
    );
  await withCluster(flags, io, async (cluster) => {
    await announce(cluster, io);
    // The checks of join run before the token exists.
    const joinPlace = wantsCommand ? await findJoinEndpoint(cluster, flags.server) : undefined;
    const warnings = await tokenWarnings(cluster, record, wantsCommand);
    const uid = await writeToken(cluster, record);
    for (const warning of [...warnings, ...(joinPlace?.warnings ?? [])]) io.err(`warning: ${warning}\n`);
    if (joinPlace === undefined) return io.out(`${tokenText(record.token)}\n`);
    if (!(await waitForSignature(cluster, record.token.id))) {
      const name = tokenSecretName(record.token.id);
      await cluster.core.deleteNamespacedSecret({ namespace, name, body: { preconditions: { uid } } });
      throw unsignedClusterInfo(record.token.id);
    }
    const { endpoint, pins } = joinPlace;
    const token = tokenText(record.token);
    const command = [
      `kubelet-authenticator join ${endpoint}`,
      `--token ${token}`,
      ...pins.map((pin) => `--discovery-token-ca-cert-hash ${pin}`),
      ...proof,
    ].join(' ');
    const shown = { token, ...shownToken(record, io.now()), endpoint, caCertHashes: pins, command };
    io.out(formatOutput(flags.output, shown, () => `${command}\n`));
  });
}

/** The UID of the new Secret. */
async function writeToken({ core }: ClusterClients, record: TokenRecord): Promise<string> {
  const creation = core.createNamespacedSecret({ namespace, body: secretOfToken(record) }).catch((error: unknown) => {
    if (error instanceof ApiRefused && error.why === 'Conflict')
      throw new CommandFailure(exitCodes.conflict, `a token with id "${record.token.id}" already exists`);
    throw error;
  });
  return (await failIfRefused(creation, 'the token could not be created')).metadata?.uid ?? '';
}

function ownerOf({ machine, pool, namespace }: CreateFlags): TokenOwner | undefined {
  const name = machine ?? pool;
  if (name === undefined) return undefined;
  if (![name, namespace].every((word) => /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(word)))
    throw new CommandFailure(exitCodes.usage, '--machine, --pool and --namespace are names of Kubernetes objects');
  return { kind: machine === undefined ? 'pool' : 'machine', namespace, name };
}

function recordOf(text: string | undefined, flags: CreateFlags, owner: TokenOwner | undefined, io: Io): TokenRecord {
  const token = text === undefined ? undefined : parseBootstrapToken(text);
  if (token?.ok === false) throw new CommandFailure(exitCodes.usage, token.problem);
  const { usages, groups, description } = flags;
  const authenticates = usages.includes('authentication');
  const problem =
    usageProblem(usages) ??
    groupProblem(groups) ??
    (/\p{Cc}/u.test(description) ? '--description is one line of plain text' : undefined);
  if (problem !== undefined) throw new CommandFailure(exitCodes.usage, problem);
  const seconds = flags.ttl ?? (owner === undefined ? 86_400 : 3_600);
  return {
    token: token?.value ?? generateBootstrapToken((count) => io.randomBytes(count)),
    description:
      description === '' && owner !== undefined ? `for ${owner.kind} ${owner.namespace}/${owner.name}` : description,
    ...(seconds === 0 ? {} : { expires: io.now() + seconds * 1_000 }),
    usages,
    // kubeadm: groups cannot be specified unless the usages include authentication.
    groups: authenticates ? groups : [],
    ...(owner === undefined ? {} : { owner }),
  };
}

/** The flags of join that name the deployment, the cluster, and the machine's proof. */
async function proofFlags(flags: CreateFlags, io: Io): Promise<readonly string[]> {
  if (flags.audience !== undefined) {
    if (!/^[\w./:-]{1,255}$/.test(flags.audience))
      throw new CommandFailure(exitCodes.usage, '--audience is not a name');
    return [
      `--audience ${flags.audience}`,
      ...(flags.cluster === undefined ? [] : [`--cluster-name ${flags.cluster}`]),
      ...evidenceFlags(flags, undefined),
    ];
  }
  const { cluster, file } = await chooseCluster(flags, io);
  if (cluster.attestation === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `which deployment checks the evidence of machines? ${file === undefined ? 'The default rules name' : `${file} names`} none`,
      '--audience names it, or --config and --cluster a cluster whose profiles demand attestation',
    );
  return [
    `--audience ${cluster.attestation.audience}`,
    `--cluster-name ${cluster.name}`,
    ...evidenceFlags(flags, cluster),
  ];
}

/**
 * Warnings if the token's rights do not let a machine join, or let it join without evidence. Throws CommandFailure if a join
 * command is wanted and cannot work.
 */
async function tokenWarnings(
  cluster: ClusterClients,
  { token, usages, groups }: TokenRecord,
  wantsCommand: boolean,
): Promise<string[]> {
  const warnings: string[] = [];
  if (!usages.includes('signing'))
    warnings.push('without the usage signing the token cannot be used for discovery, only with --discovery-file');
  if (!usages.includes('authentication'))
    return [...warnings, 'without the usage authentication no client can log in with it'];
  const who = {
    user: `system:bootstrap:${token.id}`,
    groups: ['system:bootstrappers', ...groups, 'system:authenticated'],
  };
  const resource = { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', verb: 'create' };
  const mayRequest = await isAllowed(cluster, who, resource);
  if (mayRequest === undefined)
    warnings.push(
      'it is not known whether the token may create CertificateSigningRequests: this login may not create SubjectAccessReviews',
    );
  if (mayRequest === false) {
    const problem = 'the token may not create CertificateSigningRequests';
    const remedy = `kubectl create clusterrolebinding kubeadm:kubelet-bootstrap --clusterrole=system:node-bootstrapper --group=${groups[0] ?? 'system:bootstrappers'}`;
    if (wantsCommand)
      throw new CommandFailure(exitCodes.configuration, `no join command can be printed: ${problem}`, remedy);
    warnings.push(`${problem}: ${remedy}`);
  }
  if (mayRequest === true && (await isAllowed(cluster, who, { ...resource, subresource: 'nodeclient' })) === true)
    warnings.push(
      'kube-controller-manager approves requests of this token without evidence: countersign cluster harden prevents that',
    );
  return warnings;
}
