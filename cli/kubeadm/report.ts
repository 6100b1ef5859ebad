/** What the commands have done, for people and for programs. */
import type { KubeadmCertificate } from '../../core/kubeadm/certificates.ts';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { formatOutput, table } from '../output/output.ts';
import type { Io } from '../runtime/io.ts';
import type { Certified, LeftOut } from './certify.ts';
import { filesOf } from './layout.ts';
import type { Folders } from './layout.ts';
import { derOf } from './material.ts';

export interface ReportLine {
  readonly name: KubeadmCertificate;
  readonly done: 'permitted' | 'written' | 'unchanged';
  readonly file?: string;
  readonly notAfter?: string;
  readonly serial?: string;
}

export interface Report {
  readonly certificates: readonly ReportLine[];
  readonly leftOut: readonly LeftOut[];
  /** Only of a renewal. */
  readonly backup?: string;
  readonly restart?: readonly string[];
}

export function reportLine(
  { wanted: { name }, certificate }: Pick<Certified, 'wanted' | 'certificate'>,
  folders: Folders,
  done: ReportLine['done'],
): ReportLine {
  const files = filesOf(name, folders);
  const facts = certificateFacts(derOf(certificate));
  return {
    name,
    done,
    file: files.kind === 'pki' ? files.certificate : files.kubeconfig,
    notAfter: new Date(facts.notAfter).toISOString(),
    serial: facts.serial,
  };
}

export function printReport(report: Report, output: string, io: Io): void {
  io.out(formatOutput(output, report, () => textOf(report)));
}

function textOf({ certificates, leftOut, backup, restart = [] }: Report): string {
  const rows = certificates.map(({ name, done, file = '', notAfter = '' }) => [name, done, notAfter, file]);
  const left = leftOut.map(({ name, why }) => `left out: ${name}: ${why}\n`).join('');
  const kept = backup === undefined ? '' : `the files before are in ${backup}\n`;
  const pods =
    restart.length === 0
      ? ''
      : `restart these static pods, one after the other: ${restart.join(', ')}\n` +
        'move each manifest out of the folder manifests, wait until its pod is gone, and move it back\n';
  return `${table([['CERTIFICATE', 'DONE', 'VALID TO', 'FILE'], ...rows])}${left}${kept}${pods}`;
}
