/** `countersign ca csr|import|import-key`: a CA whose certificate, or key too, comes from outside (docs/ca/sources.md). */
import { createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { importEmbeddedCa, requestForEmbedded } from '../../adapters/embedded/imported-authority.ts';
import { readImport } from '../../core/ca/import/files.ts';
import type { ImportedCertificates } from '../../core/ca/import/files.ts';
import type { ImportedCa } from '../../core/configuration/model/cluster.ts';
import { toPem } from '../../core/encoding/pem.ts';
import { chooseCluster, readBytes } from '../cluster/cluster-choice.ts';
import { caFault } from '../aws/deployed-ca.ts';
import type { DeployedFlags } from '../aws/deployed-ca.ts';
import { deployedRequest, importIntoDeployed, planOfDeployed } from '../aws/deployed-import.ts';
import type { ImportResult } from '../aws/deployed-import.ts';
import { checkKeySpec, importKeyMaterial } from '../aws/import-material.ts';
import { caText } from '../output/ca-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

interface PlaceFlags extends Partial<DeployedFlags> {
  readonly name: string;
  readonly data?: string;
  readonly config?: string;
  readonly output: string;
}

interface ImportFlags extends PlaceFlags {
  readonly cert: string;
  readonly chain?: string;
  readonly root?: string;
}

/** `place`: adds the flags that say where the CA is. */
export function caImportCommands(ca: CliCommand, place: (command: CliCommand) => CliCommand, io: Io): void {
  const withConfig = (command: CliCommand): CliCommand =>
    place(command).option('--config <file>', 'with --data: the countersign.yaml that has the CA');
  const withFiles = (command: CliCommand): CliCommand =>
    withConfig(command)
      .requiredOption('--cert <file>', 'the certificate of the CA, PEM')
      .option('--chain <file>', 'the CAs between it and the root, PEM, nearest first')
      .option('--root <file>', 'the root, PEM; not for a self-signed CA')
      .formats('table', 'json', 'yaml', 'pem');

  withConfig(ca.command('csr'))
    .description('print a request for the certificate of a CA of kind: imported, signed with its key')
    .examples('countersign ca csr --cluster prod --name nodes > nodes.csr')
    .runs(async (flags: PlaceFlags) => io.out(await request(flags, io)));

  withFiles(ca.command('import'))
    .page('ca/sources.md')
    .description(
      'put the certificate of a CA of kind: imported in force, after checking it against its key and its root',
    )
    .notes('A CA that is in force is never changed (exit code 6). Each reason of a refusal is in docs/ca/sources.md.')
    .examples('countersign ca import --cluster prod --name nodes --cert nodes.crt --chain chain.pem --root root.crt')
    .runs(async (flags: ImportFlags) => show(await importCertificate(flags, await filesOf(flags, io), io), flags, io));

  withFiles(ca.command('import-key'))
    .description('move an existing CA into KMS: first its private key, then its certificate')
    .requiredOption('--key <file>', 'the private key of the CA, PEM, not encrypted')
    .notes(
      'The key goes from this process to KMS, wrapped under a key of KMS, and nowhere else. The command can be repeated after any failure.',
      'It needs kms:GetParametersForImport, kms:ImportKeyMaterial, kms:DescribeKey and kms:GetPublicKey (keys.importers of countersign.yaml).',
    )
    .examples('countersign ca import-key --cluster prod --name kubernetes --key ca.key --cert ca.crt')
    .runs(async (flags: ImportFlags & { readonly key: string }) => show(await importKey(flags, io), flags, io));
}

async function show({ ca, created, notes }: ImportResult, { output }: PlaceFlags, io: Io): Promise<void> {
  for (const note of notes) io.err(`note: ${note}\n`);
  if (!created) io.err(`note: CA ${ca.name} was in force before, with this certificate.\n`);
  io.out(await caText(ca, output));
}

async function request(flags: PlaceFlags, io: Io): Promise<string> {
  const { data } = flags;
  if (data === undefined) return deployedRequest(deployed(flags, io), io);
  const made = await requestForEmbedded(data, await configured(flags, io));
  if (!made.ok) throw caFault(made.problem, embedded(flags, data));
  return toPem('CERTIFICATE REQUEST', made.value);
}

async function filesOf(flags: ImportFlags, io: Io): Promise<ImportedCertificates> {
  const read = async (path: string | undefined): Promise<string | undefined> =>
    path === undefined ? undefined : Buffer.from(await readBytes(path, io)).toString('latin1');
  const [certificate = '', chain, root] = [await read(flags.cert), await read(flags.chain), await read(flags.root)];
  const files = readImport({ certificate, chain, root });
  if (files.ok) return files.value;
  throw new CommandFailure(exitCodes.refused, `${files.problem.why}: ${files.problem.message}`, 'nothing was sent');
}

async function importCertificate(
  flags: PlaceFlags,
  files: ImportedCertificates,
  io: Io,
  key?: KeyObject,
): Promise<ImportResult> {
  const { data, name } = flags;
  if (data === undefined) return importIntoDeployed(files, deployed(flags, io), io);
  const imported = await importEmbeddedCa(data, await configured(flags, io), files, io.now(), {
    privateKey: key,
  }).catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== 'ENOENT') throw error;
    throw new CommandFailure(
      exitCodes.notFound,
      `there is no key of CA ${name} in ${data}`,
      'countersign ca csr makes one; countersign ca import-key takes an existing one',
    );
  });
  if (!imported.ok) throw caFault(imported.problem, embedded(flags, data));
  const { authority, created, notes } = imported.value;
  const { certificate, signer } = authority;
  return { ca: { name, certificate, keyId: signer.keyId, signatureAlgorithm: signer.algorithm }, created, notes };
}

async function importKey(flags: ImportFlags & { readonly key: string }, io: Io): Promise<ImportResult> {
  const files = await filesOf(flags, io);
  const key = await readKey(flags.key, io);
  try {
    if (flags.data !== undefined) checkKeySpec(await configured(flags, io), key);
    else await importKeyMaterial(await planOfDeployed(deployed(flags, io), io), files, key, io);
    return await importCertificate(flags, files, io, key);
  } catch (error) {
    if (!(error instanceof CommandFailure) || error.code !== exitCodes.temporary) throw error;
    throw new CommandFailure(error.code, error.message, 'run the same command again: it goes on where it ended');
  }
}

/** Its bytes are overwritten once they are read. Messages about a key name no content. */
async function readKey(path: string, io: Io): Promise<KeyObject> {
  const pem = Buffer.from(await readBytes(path, io));
  try {
    return createPrivateKey(pem);
  } catch {
    const encrypted = pem.includes('ENCRYPTED');
    throw new CommandFailure(
      exitCodes.configuration,
      encrypted ? `the key in ${path} is encrypted` : `${path} holds no private key in PEM`,
      encrypted
        ? 'openssl pkey -in ca.key | countersign ca import-key --key - … decrypts it without a file'
        : undefined,
    );
  } finally {
    pem.fill(0);
  }
}

function deployed(flags: PlaceFlags, io: Io): DeployedFlags {
  const cluster = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  if (cluster === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'which CA? --cluster names a deployed cluster, --data a folder of this machine',
    );
  return { ...flags, cluster };
}

/** For messages about a CA in a folder. */
function embedded({ name, cluster }: PlaceFlags, data: string): DeployedFlags {
  return { name, cluster: cluster ?? data };
}

async function configured(flags: PlaceFlags, io: Io): Promise<ImportedCa> {
  if (flags.config === undefined)
    throw new CommandFailure(exitCodes.usage, '--data needs --config: the countersign.yaml that has the CA');
  const { cluster, source } = await chooseCluster(flags, io);
  const ca = cluster.cas.get(flags.name);
  if (ca?.kind === 'imported') return ca;
  throw new CommandFailure(
    exitCodes.notFound,
    `${source} has no CA ${flags.name} of kind: imported in cluster ${cluster.name}`,
  );
}
