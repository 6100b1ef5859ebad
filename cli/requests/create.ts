/** `csr create` and `csr certificate`: what a requester does before the approval and after it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { pemBlocks } from '../../core/encoding/pem.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { addClusterAccess, announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { readText } from '../cluster/cluster-choice.ts';
import { failIfRefused } from '../cluster/object-answers.ts';
import { formatOutput } from '../output/output.ts';
import { commaList } from '../runtime/command.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { readRequest, viewOf } from './read-requests.ts';

interface CreateFlags extends ClusterAccessFlags {
  readonly signerName: string;
  readonly usages: readonly string[];
  readonly expirationSeconds?: number;
  readonly output: string;
}

const waitMilliseconds = 30_000;
const pauseMilliseconds = 250;

export function requesterCommands(csr: CliCommand, io: Io): void {
  addClusterAccess(csr.command('create'))
    .description('create a request in the cluster, from the PEM of a certificate request')
    .argument('<name>', 'its name in the cluster')
    .argument('<file>', 'the PEM, for example of openssl req; - reads standard input')
    .requiredOption('--signer-name <name>', 'the signer that it is for')
    .requiredOption('--usages <list>', 'usages, with commas between', commaList)
    .option('--expiration-seconds <n>', 'lifetime to ask for, from 600 (default: what the signer gives)', lifetime)
    .formats('table', 'json', 'yaml')
    .examples(
      "countersign csr create jane jane.csr --signer-name kubernetes.io/kube-apiserver-client --usages 'client auth'",
      "openssl req … | countersign csr create web - --signer-name example.com/web --usages 'digital signature,server auth'",
    )
    .runs(async (name: string, file: string, flags: CreateFlags) => {
      const pem = await requestPem(file, io);
      const created = await withCluster(flags, io, async (cluster) => {
        await announce(cluster, io);
        return create(cluster, name, pem, flags);
      });
      const view = viewOf(created, name);
      const next = `${printable(name)} is created\ncountersign csr approve ${printable(name)} --reason TEXT approves it\n`;
      io.out(formatOutput(flags.output, view, () => next));
    });

  addClusterAccess(csr.command('certificate'))
    .description(
      `print the certificate of a request in PEM; waits up to ${waitMilliseconds / 1_000} s for it.\n` +
        'Exit code 1: the request is denied, or failed. 5: it has no certificate yet.',
    )
    .argument('<name>', 'its name in the cluster')
    .examples('countersign csr certificate jane > jane.crt')
    .runs(async (name: string, flags: ClusterAccessFlags) =>
      io.out(await withCluster(flags, io, (cluster) => certificateOf(cluster, name, io))),
    );
}

/** Without what openssl writes around the block. Throws CommandFailure. */
async function requestPem(file: string, io: Io): Promise<string> {
  const blocks = pemBlocks(await readText(file, io), 'CERTIFICATE REQUEST');
  const [pem] = blocks;
  if (pem !== undefined && blocks.length === 1) return pem;
  throw new CommandFailure(
    exitCodes.refused,
    `${file} has ${blocks.length === 0 ? 'no certificate request' : `${blocks.length} certificate requests`} in PEM`,
    'openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout NAME.key -subj /CN=NAME makes one',
  );
}

function create({ certificates }: ClusterConnection, name: string, pem: string, flags: CreateFlags): Promise<unknown> {
  const { signerName, usages, expirationSeconds } = flags;
  const spec = {
    request: Buffer.from(pem).toString('base64'),
    signerName,
    usages: [...usages],
    ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
  };
  const object = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name }, spec };
  return failIfRefused<unknown>(certificates.createCertificateSigningRequest({ body: object }), name, {
    Conflict: 'a request has this name already; choose another',
    Forbidden: 'it needs create on certificatesigningrequests',
  });
}

async function certificateOf(cluster: ClusterConnection, name: string, io: Io): Promise<string> {
  const end = io.now() + waitMilliseconds;
  for (;;) {
    const raw = await readRequest(cluster, name);
    const { state, message, reason } = viewOf(raw, name);
    const { certificate } = objectOf(objectOf(raw)['status']);
    if (state === 'issued' && typeof certificate === 'string')
      return Buffer.from(certificate, 'base64').toString('utf8');
    const why = [reason, message].filter((text) => text !== undefined).join(': ');
    if (state === 'denied' || state === 'failed')
      throw new CommandFailure(
        exitCodes.refused,
        `${printable(name)} ${state === 'denied' ? 'is denied' : 'has failed'}: ${printable(why)}`,
        `countersign csr explain ${printable(name)} shows each check`,
      );
    if (io.now() >= end)
      throw new CommandFailure(
        exitCodes.temporary,
        `${printable(name)} has no certificate after ${waitMilliseconds / 1_000} s: it is ${state}`,
        state === 'pending'
          ? `countersign csr approve ${printable(name)} --reason TEXT approves it`
          : 'no signer has answered; is the relay running?',
      );
    await sleep(pauseMilliseconds);
  }
}

/** The API server accepts no shorter one. */
function lifetime(text: string): number {
  if (!/^\d{3,9}$/.test(text) || Number(text) < 600) throw new InvalidArgumentError('A whole number, at least 600.');
  return Number(text);
}
