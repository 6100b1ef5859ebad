/** `countersign token`: bootstrap tokens as kubeadm makes them, for nodes that join with kubelet-authenticator. */
import {
  bootstrapTokenForm,
  bootstrapTokenIdForm,
  isTokenId,
  parseBootstrapToken,
  tokenOfSecret,
  tokenSecretName,
  tokenSecretType,
} from '../../core/kubernetes/bootstrap-token.ts';
import type { TokenRecord } from '../../core/kubernetes/bootstrap-token.ts';
import { atMost, printable } from '../../core/outcome/printable-text.ts';
import { addClusterAccess, announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { allPages, failIfRefused } from '../cluster/object-answers.ts';
import { formatOutput, table } from '../output/output.ts';
import { shownToken } from '../output/token-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { addCreate } from './token-create.ts';
import { addReconcile } from './token-reconcile.ts';

const namespace = 'kube-system';

export function tokenCommands(program: CliCommand, io: Io): void {
  const token = program.command('token').description('bootstrap tokens, with which machines may request a certificate');

  addCreate(token, io);

  addClusterAccess(token.command('list'))
    .description('list bootstrap tokens, without their secrets')
    .formats('table', 'wide', 'json', 'yaml')
    .examples('countersign token list', 'countersign token list -o json')
    .runs((flags: ClusterAccessFlags & { output: string }) => list(flags, io));

  addClusterAccess(token.command('delete'))
    .description('delete bootstrap tokens')
    .argument('<token...>', 'ids, or whole tokens')
    .examples('countersign token delete abcdef', 'countersign token delete abcdef uvwxyz')
    .runs((texts: string[], flags: ClusterAccessFlags) => remove(texts, flags, io));

  addReconcile(token, io);
}

async function list(flags: ClusterAccessFlags & { output: string }, io: Io): Promise<void> {
  const fieldSelector = `type=${tokenSecretType}`;
  const secrets = await withCluster(flags, io, ({ core }) =>
    allPages((page) => core.listNamespacedSecret({ namespace, fieldSelector, ...page }), 'bootstrap tokens'),
  );
  const records: TokenRecord[] = [];
  for (const secret of secrets) {
    const record = tokenOfSecret(secret);
    if (!record.ok) io.err(`warning: ${record.problem}\n`);
    else records.push(record.value);
  }
  const shown = records.map((record) => ({ id: record.token.id, ...shownToken(record, io.now()) }));
  const wide = flags.output === 'wide';
  const rows = shown.map(({ id, ttl, expires = '<never>', usages, owner = '', description, groups }) => {
    const [usageText, extraGroups] = [usages, groups].map((words) => atMost(words, printable).join(','));
    const words = [
      id,
      ttl,
      expires,
      usageText,
      printable(owner),
      printable(description),
      ...(wide ? [extraGroups] : []),
    ];
    return words.map((word) => word || '<none>');
  });
  const head = ['TOKEN ID', 'TTL', 'EXPIRES', 'USAGES', 'FOR', 'DESCRIPTION', ...(wide ? ['EXTRA GROUPS'] : [])];
  io.out(formatOutput(flags.output, shown, () => table([head, ...rows])));
}

async function remove(texts: readonly string[], flags: ClusterAccessFlags, io: Io): Promise<void> {
  const ids = texts.map((text) => {
    if (isTokenId(text)) return text;
    const token = parseBootstrapToken(text);
    if (!token.ok)
      throw new CommandFailure(
        exitCodes.usage,
        `given token didn't match pattern "${bootstrapTokenForm}" or "${bootstrapTokenIdForm}"`,
      );
    return token.value.id;
  });
  await withCluster(flags, io, async (cluster) => {
    await announce(cluster, io);
    for (const id of ids) {
      const deletion = cluster.core.deleteNamespacedSecret({ namespace, name: tokenSecretName(id) });
      await failIfRefused(deletion, `failed to delete bootstrap token "${id}"`);
      io.out(`bootstrap token "${id}" deleted\n`);
    }
  });
}
