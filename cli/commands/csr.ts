import { InvalidArgumentError } from 'commander';
import { pemBlocks } from '../../core/encoding/pem.ts';
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';
import { rulesFingerprint, shortFingerprint } from '../../core/configuration/rules-fingerprint.ts';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import { addClusterOptions, chooseCluster, readText } from '../cluster/cluster-choice.ts';
import type { ChosenCluster, ClusterFlags } from '../cluster/cluster-choice.ts';
import { commaList } from '../runtime/command.ts';
import type { CliCommand } from '../runtime/command.ts';
import { withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import { explain } from '../output/explanation.ts';
import type { NamedExtension } from '../output/extension-names.ts';
import { explanationText } from '../output/explanation-text.ts';
import { kubeconfigPath } from '../runtime/io.ts';
import type { Io } from '../runtime/io.ts';
import { formatOutput } from '../output/output.ts';
import { isObject, objectOf } from '../../core/encoding/json-object.ts';
import { requestCommands } from '../requests/command.ts';
import { readRequest } from '../requests/read-requests.ts';

interface ExplainFlags extends ClusterFlags, ClusterAccessFlags {
  readonly signerName?: string;
  readonly usages?: readonly string[];
  readonly expirationSeconds?: number;
  readonly all?: boolean;
  readonly output: string;
}

export function csrCommands(program: CliCommand, io: Io): void {
  const csr = program.command('csr').description('look at certificate signing requests, and decide them');
  requestCommands(csr, io);
  addClusterOptions(csr.command('explain'))
    .page('signers.md')
    .description(
      'show what the signer would do with a request, and why: each check with the value that it saw.\n' +
        'Exit code 0: it would be signed, now or once it is approved, or this signer issued its certificate. 1: it would not.',
    )
    .argument(
      '<request>',
      'name in the cluster, or a file with the object (JSON, YAML) or its PEM; - reads standard input',
    )
    .option('--kubeconfig <file>', 'to read a request by name (default: KUBECONFIG, then ~/.kube/config)')
    .option('--context <name>', 'context of that kubeconfig')
    .option('--signer-name <name>', 'for a bare PEM: the signer it would be sent to')
    .option('--usages <list>', 'for a bare PEM: usages, with commas between', commaList)
    .option('--expiration-seconds <n>', 'for a bare PEM: lifetime it would ask for', wholeNumber)
    .option('-v, --all', 'a line for each check, not only for those that fail or are not decided yet')
    .formats('table', 'json', 'yaml')
    .examples(
      'countersign csr explain node-csr-1 --config countersign.yaml --cluster prod',
      'kubectl get csr node-csr-1 -o json | countersign csr explain -',
      "countersign csr explain server.csr --signer-name kubernetes.io/kubelet-serving --usages 'digital signature,server auth'",
    )
    .runs((request: string, flags: ExplainFlags) => explainRequest(request, flags, io));
}

async function explainRequest(source: string, flags: ExplainFlags, io: Io): Promise<ExitCode> {
  const chosen = await chooseCluster(flags, io);
  const { object, certificate } = await loadRequest(source, flags, io);
  const caIsConfigured = chosen.file !== undefined;
  const explanation = explain(object, chosen.cluster, io.now(), { certificate, caIsConfigured });
  const { droppedExtensions } = explanation;
  const extensions = droppedExtensions.length === 0 ? undefined : await nameExtensions(object, droppedExtensions);
  const shown = { ...explanation, extensions: extensions?.named ?? [], ...rulesOf(chosen) };
  const view = {
    rules: `cluster ${chosen.cluster.name} (${sourceText(chosen)})`,
    extensions: extensions?.texts ?? [],
    all: flags.all === true,
  };
  io.out(formatOutput(flags.output, shown, () => explanationText(explanation, view)));
  const { outcome } = explanation;
  return outcome === 'issue' || outcome === 'wait' || outcome === 'issued' ? exitCodes.ok : exitCodes.refused;
}

function rulesOf({ cluster, source }: ChosenCluster): { readonly rules: string; readonly rulesSha256: string } {
  return { rules: source, rulesSha256: rulesFingerprint(cluster) };
}

/** These requested extensions with their names, as objects and as text. */
async function nameExtensions(
  { request }: RequestObject,
  oids: readonly string[],
): Promise<{ readonly named: readonly NamedExtension[]; readonly texts: readonly string[] }> {
  const { extensionText, extensionsOfRequest } = await import('../output/extension-names.ts');
  const [pem = ''] = pemBlocks(Buffer.from(request).toString('latin1'), 'CERTIFICATE REQUEST');
  const named = extensionsOfRequest(pem, oids);
  return { named, texts: named.map(extensionText) };
}

/** `certificate`: the text of status.certificate; empty without a certificate. */
async function loadRequest(
  source: string,
  flags: ExplainFlags,
  io: Io,
): Promise<{ readonly object: RequestObject; readonly certificate: string }> {
  const isFile = source === '-' || io.fileExists(source) || /[/\\]|\.(json|ya?ml|pem|csr)$/i.test(source);
  const raw = isFile ? fromText(await readText(source, io), source, flags) : await fromCluster(source, flags, io);
  const decoded = decodeRequestObject(raw);
  const { certificate } = objectOf(objectOf(raw)['status']);
  if (decoded.ok) return { object: decoded.value, certificate: typeof certificate === 'string' ? certificate : '' };
  throw new CommandFailure(
    exitCodes.refused,
    `${source}: ${decoded.problem.message}`,
    'the signer answers such an object with HTTP 400',
  );
}

async function fromCluster(name: string, flags: ExplainFlags, io: Io): Promise<unknown> {
  const kubeconfig = kubeconfigPath(flags.kubeconfig, io);
  if (!io.fileExists(kubeconfig))
    throw new CommandFailure(
      exitCodes.notFound,
      `there is no file ${name} here, and no kubeconfig ${kubeconfig} to look it up in a cluster`,
      'name a file, or a kubeconfig with --kubeconfig',
    );
  return withCluster(flags, io, (cluster) => readRequest(cluster, name));
}

/** For a bare PEM, flags give the rest of the request object. */
function fromText(text: string, source: string, flags: ExplainFlags): unknown {
  if (!text.trimStart().startsWith('-----BEGIN')) return fromObject(text, source, flags);
  const { signerName, usages, expirationSeconds } = flags;
  if (signerName === undefined || usages === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `${source} is a bare PEM: --signer-name and --usages must say what it would ask for`,
      "for example --signer-name kubernetes.io/kube-apiserver-client --usages 'client auth'",
    );
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: notCreated,
    spec: { request: Buffer.from(text).toString('base64'), signerName, usages, expirationSeconds },
  };
}

/** Stands for the fields that the API server sets when it creates an object. */
const notCreated = { name: 'not-created-yet', uid: 'not-created-yet' };

function fromObject(text: string, source: string, flags: ExplainFlags): unknown {
  const { signerName, usages, expirationSeconds } = flags;
  if ((signerName ?? usages ?? expirationSeconds) !== undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `${source} is an object: --signer-name, --usages and --expiration-seconds are for a bare PEM`,
    );
  const document = readBoundedDocument(text);
  if (!document.ok)
    throw new CommandFailure(
      exitCodes.refused,
      `${source} is no PEM, and ${document.problem}`,
      'kubectl get csr NAME -o json prints an object of any size',
    );
  const { value } = document;
  if (isObject(value) && value['kind'] === 'List')
    throw new CommandFailure(exitCodes.usage, `${source} is a list`, 'name one request: kubectl get csr NAME -o json');
  // A manifest that was never created has no UID, and can still be explained.
  return isObject(value) ? { ...value, metadata: { ...notCreated, ...objectOf(value['metadata']) } } : value;
}

/** No endpoint is deployed from the default rules, so their fingerprint has nothing to be compared with. */
function sourceText({ cluster, file, source }: ChosenCluster): string {
  return file === undefined ? source : `${source}, rules ${shortFingerprint(rulesFingerprint(cluster))}`;
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Not a whole number.');
  return Number(text);
}
