/** `countersign token`: bootstrap tokens as kubeadm makes them, for nodes that join with kubelet-authenticator. */
import { Command, Option } from 'commander';
import {
  bootstrapTokenForm,
  bootstrapTokenIdForm,
  defaultTokenGroup,
  generateBootstrapToken,
  groupProblem,
  isTokenId,
  parseBootstrapToken,
  rfc3339,
  secretOfToken,
  tokenOfSecret,
  tokenSecretName,
  tokenSecretType,
  tokenText,
  tokenUsages,
  usageProblem,
} from '../../core/kubernetes/bootstrap-token.ts';
import type { TokenOwner, TokenRecord } from '../../core/kubernetes/bootstrap-token.ts';
import { atMost, printable } from '../../core/outcome/printable-text.ts';
import { addClusterOptions, chooseCluster } from '../cluster/cluster-choice.ts';
import type { ClusterFlags } from '../cluster/cluster-choice.ts';
import { addClusterAccess, announce, withObjects } from '../cluster/cluster-objects.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-objects.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { findJoinPlace, isEndpoint, unsigned, waitForSignature } from '../cluster/join-line.ts';
import { expected, mayThey, objectOf, textOf } from '../cluster/object-answers.ts';
import type { Cluster } from '../cluster/object-answers.ts';
import { commaList, durationText, json, outputOption, table } from '../output/output.ts';
import { goDuration, reconcileCommand } from '../cluster/token-reconcile.ts';

export const secretsPath = '/api/v1/namespaces/kube-system/secrets';

interface CreateFlags extends ClusterAccessFlags, ClusterFlags {
  readonly ttl?: number;
  readonly usages: readonly string[];
  readonly groups: readonly string[];
  readonly description: string;
  readonly machine?: string;
  readonly pool?: string;
  readonly namespace: string;
  readonly audience?: string;
  readonly provider: string;
  readonly server?: string;
  readonly output: string;
}

export function tokenCommand(io: Io, finish: (code: ExitCode) => void): Command {
  const token = new Command('token').description('bootstrap tokens, with which machines may ask for a certificate');

  const create = token.command('create').argument('[token]', 'the token to write (default: a random one)');
  addClusterOptions(addClusterAccess(create))
    .description('make a bootstrap token and print the command with which a machine joins')
    .option(
      '--ttl <duration>',
      'until it expires, such as 30m or 24h; 0: never (24h; 1h with --machine or --pool)',
      goDuration,
    )
    .addOption(
      new Option('--usages <list>', 'what it may be used for')
        .argParser(commaList)
        .default(['signing', 'authentication'], 'signing,authentication'),
    )
    .addOption(
      new Option('--groups <list>', 'whom it makes of its bearer')
        .argParser(commaList)
        .default([defaultTokenGroup], defaultTokenGroup),
    )
    .option('--description <text>', 'for people', '')
    .addOption(
      new Option(
        '--machine <name>',
        'for one Machine of Cluster API: countersign token reconcile keeps it until the node is Ready',
      ).conflicts('pool'),
    )
    .option('--pool <name>', 'for a MachinePool: it lives as long as the pool')
    .option('--namespace <name>', 'of the Machine or MachinePool', 'default')
    .option('--audience <name>', 'whom the machine proves itself to (default: as countersign.yaml says)')
    .addOption(
      new Option('--provider <name>', 'how the machine proves which one it is')
        .choices(['aws', 'insecure'])
        .default('aws'),
    )
    .option(
      '--server <host:port>',
      'where machines find the API server (default: as in cluster-info, unless that is a loopback address)',
    )
    .addOption(outputOption('command', 'token', 'json'))
    .addHelpText(
      'after',
      `
The token alone certifies nothing where the signer demands attestation: a machine must also prove which one it is.
A command is printed only if join would take it: cluster-info, the CA's hash, the address and the token's rights are checked first, and
without them no token is made. -o token checks nothing of that.

Examples:
  countersign token create --config countersign.yaml --cluster prod
  countersign token create --audience 123456789012/eu-central-1/prod --ttl 30m --description 'rack 7'
  countersign token create --cluster prod --machine worker-3 --namespace fleet
  countersign token create --cluster prod --pool workers -o token`,
    )
    .action(async (text: string | undefined, flags: CreateFlags) => createToken(text, flags, io));

  addClusterAccess(token.command('list'))
    .description('list bootstrap tokens; never their secrets')
    .addOption(outputOption('table', 'json'))
    .addHelpText('after', '\nExamples:\n  countersign token list\n  countersign token list -o json')
    .action(async (flags: ClusterAccessFlags & { output: string }) => list(flags, io));

  addClusterAccess(token.command('delete'))
    .description('delete bootstrap tokens')
    .argument('<token...>', 'ids, or whole tokens')
    .addHelpText('after', '\nExamples:\n  countersign token delete abcdef\n  countersign token delete abcdef uvwxyz')
    .action(async (texts: string[], flags: ClusterAccessFlags) => remove(texts, flags, io));

  token.addCommand(reconcileCommand(io, finish));
  return token;
}

async function createToken(text: string | undefined, flags: CreateFlags, io: Io): Promise<void> {
  const owner = ownerOf(flags);
  const record = recordOf(text, flags, owner, io);
  const wantsCommand = flags.output !== 'token';
  const audience = wantsCommand ? await audienceOf(flags, io) : undefined;
  if (wantsCommand && record.usages.length < tokenUsages.length)
    throw new CommandFailure(
      exitCodes.usage,
      `no join command can be printed for a token without the usages ${tokenUsages.join(' and ')}`,
      '-o token makes it without a command',
    );
  if (flags.server !== undefined && !isEndpoint(flags.server))
    throw new CommandFailure(
      exitCodes.usage,
      '--server is <host>:<port>, such as 10.0.0.10:6443 or [2001:db8::1]:6443',
    );
  await withObjects(flags, io, async (cluster) => {
    await announce(cluster, io);
    // All that join will look at is looked at before the token is made.
    const place = wantsCommand ? await findJoinPlace(cluster, flags.server) : undefined;
    const warnings = await tokenWarnings(cluster, record, wantsCommand);
    const made = await cluster.api.create(secretsPath, secretOfToken(record), cluster.signal);
    if (!made.ok && made.why === 'Conflict')
      throw new CommandFailure(exitCodes.conflict, `a token with id "${record.token.id}" already exists`);
    const { uid } = objectOf(expected(made, 'the token could not be made')['metadata']);
    for (const warning of [...warnings, ...(place?.warning === undefined ? [] : [place.warning])])
      io.err(`warning: ${warning}\n`);
    if (place === undefined) return io.out(`${tokenText(record.token)}\n`);
    if (!(await waitForSignature(cluster, record.token.id))) {
      await cluster.api.remove(
        `${secretsPath}/${tokenSecretName(record.token.id)}`,
        { uid: textOf(uid) },
        cluster.signal,
      );
      throw unsigned(record.token.id);
    }
    const { endpoint, pins } = place;
    const command = [
      `kubelet-authenticator join ${endpoint}`,
      `--token ${tokenText(record.token)}`,
      ...pins.map((pin) => `--discovery-token-ca-cert-hash ${pin}`),
      ...(audience === undefined ? [] : [`--audience ${audience.audience}`]),
      ...(audience?.clusterName === undefined ? [] : [`--cluster-name ${audience.clusterName}`]),
      `--provider ${flags.provider}`,
    ].join(' ');
    if (flags.output === 'command') io.out(`${command}\n`);
    else io.out(json({ token: tokenText(record.token), ...shown(record, io), endpoint, caCertHashes: pins, command }));
  });
}

function ownerOf({ machine, pool, namespace }: CreateFlags): TokenOwner | undefined {
  const name = machine ?? pool;
  if (name === undefined) return undefined;
  if (![name, namespace].every((word) => /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(word)))
    throw new CommandFailure(exitCodes.usage, '--machine, --pool and --namespace are names of Kubernetes objects');
  return { kind: machine === undefined ? 'pool' : 'machine', namespace, name };
}

function recordOf(text: string | undefined, flags: CreateFlags, owner: TokenOwner | undefined, io: Io): TokenRecord {
  const token =
    text === undefined ? generateBootstrapToken((count) => io.randomBytes(count)) : parseBootstrapToken(text);
  if ('problem' in token) throw new CommandFailure(exitCodes.usage, token.problem);
  const { usages, groups, description } = flags;
  const authenticates = usages.includes('authentication');
  const problem =
    usageProblem(usages) ??
    groupProblem(groups) ??
    (/\p{Cc}/u.test(description) ? '--description is one line of plain text' : undefined);
  if (problem !== undefined) throw new CommandFailure(exitCodes.usage, problem);
  const seconds = flags.ttl ?? (owner === undefined ? 86_400 : 3_600);
  return {
    token,
    description:
      description === '' && owner !== undefined ? `for ${owner.kind} ${owner.namespace}/${owner.name}` : description,
    ...(seconds === 0 ? {} : { expires: io.now() + seconds * 1_000 }),
    usages,
    // kubeadm: groups cannot be specified unless the usages include authentication.
    groups: authenticates ? groups : [],
    ...(owner === undefined ? {} : { owner }),
  };
}

async function audienceOf(flags: CreateFlags, io: Io): Promise<{ audience: string; clusterName?: string }> {
  if (flags.audience !== undefined) {
    if (!/^[\w./:-]{1,255}$/.test(flags.audience))
      throw new CommandFailure(exitCodes.usage, '--audience is not a name');
    const clusterName = flags.cluster;
    return { audience: flags.audience, ...(clusterName === undefined ? {} : { clusterName }) };
  }
  const { cluster, file } = await chooseCluster(flags, io);
  if (cluster.attestation === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `which deployment do machines prove themselves to? ${file === undefined ? 'The default rules do' : `${file} does`} not say`,
      '--audience names it, or --config and --cluster a cluster whose profiles demand attestation',
    );
  return { audience: cluster.attestation.audience, clusterName: cluster.name };
}

/**
 * What would keep a machine with this token from joining, or let it join without a proof. What certainly keeps it from joining is
 * a CommandFailure where the join command is wanted.
 */
async function tokenWarnings(
  cluster: Cluster,
  { token, usages, groups }: TokenRecord,
  wantsCommand: boolean,
): Promise<string[]> {
  const warnings: string[] = [];
  if (!usages.includes('signing'))
    warnings.push('without the usage signing the token cannot be used for discovery, only with --discovery-file');
  if (!usages.includes('authentication'))
    return [...warnings, 'without the usage authentication nobody can log in with it'];
  const who = {
    user: `system:bootstrap:${token.id}`,
    groups: ['system:bootstrappers', ...groups, 'system:authenticated'],
  };
  const resource = { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', verb: 'create' };
  const may = await mayThey(cluster, who, resource);
  if (may === undefined)
    warnings.push('whether the token may ask for certificates is not known: SubjectAccessReviews are not allowed');
  if (may === false) {
    const problem = 'the token may not create CertificateSigningRequests';
    const mend = `kubectl create clusterrolebinding kubeadm:kubelet-bootstrap --clusterrole=system:node-bootstrapper --group=${groups[0] ?? 'system:bootstrappers'}`;
    if (wantsCommand)
      throw new CommandFailure(exitCodes.configuration, `no join command can be printed: ${problem}`, mend);
    warnings.push(`${problem}: ${mend}`);
  }
  if (may === true && (await mayThey(cluster, who, { ...resource, subresource: 'nodeclient' })) === true)
    warnings.push(
      'requests made with this token are approved by kube-controller-manager without a proof: countersign cluster harden',
    );
  return warnings;
}

async function list(flags: ClusterAccessFlags & { output: string }, io: Io): Promise<void> {
  const secrets = await withObjects(flags, io, async ({ api, signal }) =>
    expected(await api.list(secretsPath, { fieldSelector: `type=${tokenSecretType}` }, signal), 'bootstrap tokens'),
  );
  const records: TokenRecord[] = [];
  for (const secret of secrets) {
    // List items come without their type's name; the Secret's own type is there.
    const record = tokenOfSecret(secret);
    if ('problem' in record) io.err(`warning: ${record.problem}\n`);
    else records.push(record);
  }
  if (flags.output === 'json') {
    io.out(json(records.map((record) => ({ id: record.token.id, ...shown(record, io) }))));
    return;
  }
  const rows = records.map((record) => {
    const { usages, groups, description } = record;
    const { ttl, expires, owner } = shown(record, io);
    const words = [
      record.token.id,
      ttl,
      expires ?? '<never>',
      atMost(usages, printable).join(','),
      printable(owner ?? ''),
      printable(description),
      atMost(groups, printable).join(','),
    ];
    return words.map((word) => (word === '' ? '<none>' : word));
  });
  io.out(table([['TOKEN ID', 'TTL', 'EXPIRES', 'USAGES', 'FOR', 'DESCRIPTION', 'EXTRA GROUPS'], ...rows]));
}

/** All but the secret. */
function shown({ expires, usages, groups, description, owner }: TokenRecord, io: Io) {
  const left = expires === undefined ? undefined : Math.floor((expires - io.now()) / 1_000);
  return {
    ttl:
      left === undefined
        ? '<forever>'
        : left <= 0
          ? '<expired>'
          : durationText(left > 3_600 ? left - (left % 60) : left),
    ...(expires === undefined ? {} : { expires: rfc3339(expires) }),
    usages,
    groups,
    description,
    ...(owner === undefined ? {} : { owner: `${owner.kind} ${owner.namespace}/${owner.name}` }),
  };
}

async function remove(texts: readonly string[], flags: ClusterAccessFlags, io: Io): Promise<void> {
  const ids = texts.map((text) => {
    const token = isTokenId(text) ? { id: text } : parseBootstrapToken(text);
    if ('problem' in token)
      throw new CommandFailure(
        exitCodes.usage,
        `given token didn't match pattern "${bootstrapTokenForm}" or "${bootstrapTokenIdForm}"`,
      );
    return token.id;
  });
  await withObjects(flags, io, async (cluster) => {
    await announce(cluster, io);
    const { api, signal } = cluster;
    for (const id of ids) {
      const gone = await api.remove(`${secretsPath}/${tokenSecretName(id)}`, {}, signal);
      expected(gone, `failed to delete bootstrap token "${id}"`);
      io.out(`bootstrap token "${id}" deleted\n`);
    }
  });
}
