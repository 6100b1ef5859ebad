import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toolPath } from '../../tools/tools.ts';
import { temporaryFolder } from '../processes/processes.ts';

/** What a linter has against a certificate. */
export interface Finding {
  tool: 'zlint' | 'pkilint';
  severity: 'notice' | 'warning' | 'error' | 'fatal';
  /** The linter's own name for the rule: the key of an allow-list. */
  lint: string;
  /** Where and what, as far as the linter says. */
  detail: string;
}

export interface LintReport {
  /** Warnings and worse. None is expected but what a reviewed allow-list names. */
  findings: Finding[];
  /** Remarks, such as a criticality that is allowed but unusual. */
  notices: Finding[];
}

/** A certificate to lint and, to judge them together, its issuer. A self-signed one goes alone: it may lack an AKI. */
export interface LintSubject {
  certificatePem: string;
  issuerPem?: string;
}

/** All linters on all certificates; one report each, in order. Hundreds cost a few seconds and three processes. */
export async function lintCertificates(subjects: readonly LintSubject[]): Promise<LintReport[]> {
  const pems = subjects.map((subject) => subject.certificatePem);
  const chained = subjects.flatMap(({ certificatePem, issuerPem }, index) =>
    issuerPem === undefined ? [] : [{ index, certificatePem, issuerPem }],
  );
  const [byZlint, byPkilint, byChain] = await Promise.all([zlint(pems), pkilint(pems), pkilintChains(chained)]);
  return pems.map((_, index) => {
    const reports = [
      byZlint[index]!,
      byPkilint[index]!,
      ...byChain.filter((__, link) => chained[link]!.index === index),
    ];
    return {
      findings: reports.flatMap((report) => report.findings),
      notices: reports.flatMap((report) => report.notices),
    };
  });
}

/** Both linters on complete CRLs; one report each, in order. */
export async function lintCrls(crlPems: readonly string[]): Promise<LintReport[]> {
  const [byZlint, byPkilint] = await Promise.all([
    zlint(crlPems),
    withFiles(crlPems, (paths) => runPkilint(paths.map((path) => ['lint_crl', '-t', 'CRL', '-p', 'PKIX', path]))),
  ]);
  return crlPems.map((_, index) => {
    const reports = [byZlint[index]!, byPkilint[index]!];
    return {
      findings: reports.flatMap((report) => report.findings),
      notices: reports.flatMap((report) => report.notices),
    };
  });
}

/**
 * All of zlint but its RFC rules. These others speak of the public web or of mail, and a kubelet's certificate rightly
 * breaks them. Named by exclusion because zlint 3.6.1 does not recognise all RFC sources when asked to include them.
 */
const ZLINT_EXCLUDED_SOURCES = 'Apple,CABF_BR,CABF_EV,CABF_SMIME_BR,Community,ETSI_ESI,Mozilla';

const ZLINT_SEVERITIES: Record<string, Finding['severity']> = {
  info: 'notice',
  warn: 'warning',
  error: 'error',
  fatal: 'fatal',
};

async function zlint(certificatePems: readonly string[]): Promise<LintReport[]> {
  return withFiles(certificatePems, async (paths) => {
    const reports: LintReport[] = [];
    // It prints one line a file, and stops at the first it cannot read: that one is reported, the next starts anew.
    while (reports.length < paths.length) {
      const args = ['-excludeSources', ZLINT_EXCLUDED_SOURCES, ...paths.slice(reports.length)];
      const { code, stdout, stderr } = await runTool(await toolPath('zlint'), args);
      const lines = stdout.split('\n').filter((line) => line !== '');
      reports.push(...lines.map((line) => toReport(zlintFindings(JSON.parse(line) as ZlintResults))));
      if (code !== 0) reports.push(unreadable('zlint', stderr));
      else if (reports.length < paths.length) throw new Error(`zlint left out certificates: ${stderr}`);
    }
    return reports;
  });
}

type ZlintResults = Record<string, { result: string; details?: string }>;

function zlintFindings(results: ZlintResults): Finding[] {
  return Object.entries(results).flatMap(([lint, { result, details = '' }]) => {
    const severity = ZLINT_SEVERITIES[result];
    return severity === undefined ? [] : [{ tool: 'zlint' as const, severity, lint, detail: details }];
  });
}

/** `lint_pkix_cert`: each certificate by itself. */
function pkilint(certificatePems: readonly string[]): Promise<LintReport[]> {
  return withFiles(certificatePems, (paths) => runPkilint(paths.map((path) => ['lint_pkix_cert', path])));
}

/** `lint_pkix_signer_signee_cert_chain`: names, key identifiers and signature between an issuer and what it issued. */
function pkilintChains(chains: readonly Required<LintSubject>[]): Promise<LintReport[]> {
  const pems = chains.flatMap((chain) => [chain.issuerPem, chain.certificatePem]);
  return withFiles(pems, (paths) =>
    runPkilint(
      chains.map((_, index) => ['lint_pkix_signer_signee_cert_chain', paths[2 * index]!, paths[2 * index + 1]!]),
    ),
  );
}

type PkilintResult = {
  node_path: string;
  finding_descriptions: { severity: string; code: string; message: string | null }[];
}[];

async function runPkilint(jobs: readonly string[][]): Promise<LintReport[]> {
  if (jobs.length === 0) return [];
  const driver = join(import.meta.dirname, '../..', 'tools', 'pkilint', 'batch.py');
  const { code, stdout, stderr } = await runTool(await toolPath('pkilint'), [driver], JSON.stringify(jobs));
  if (code !== 0) throw new Error(`pkilint ended with ${code}: ${stderr}`);
  const results = JSON.parse(stdout) as (PkilintResult | { failure: string })[];
  if (results.length !== jobs.length) throw new Error(`pkilint answered ${results.length} of ${jobs.length} questions`);
  return results.map((result) =>
    'failure' in result ? unreadable('pkilint', result.failure) : toReport(pkilintFindings(result)),
  );
}

function pkilintFindings(result: PkilintResult): Finding[] {
  return result.flatMap(({ node_path: path, finding_descriptions: descriptions }) =>
    descriptions.map(({ severity, code, message }) => ({
      tool: 'pkilint' as const,
      severity: severity.toLowerCase() as Finding['severity'],
      lint: code,
      detail: message === null ? path : `${path}: ${message}`,
    })),
  );
}

/** What a linter cannot even read is a finding like the others, so that no certificate is passed over in silence. */
function unreadable(tool: Finding['tool'], detail: string): LintReport {
  return { findings: [{ tool, severity: 'fatal', lint: 'unreadable', detail: detail.trim() }], notices: [] };
}

function toReport(found: Finding[]): LintReport {
  return {
    findings: found.filter((finding) => finding.severity !== 'notice'),
    notices: found.filter((finding) => finding.severity === 'notice'),
  };
}

/** Both linters read files only. */
async function withFiles<T>(pems: readonly string[], work: (paths: string[]) => Promise<T>): Promise<T> {
  const folder = temporaryFolder('lint');
  try {
    const paths = pems.map((pem, index) => {
      const path = join(folder.path, `${index}.pem`);
      writeFileSync(path, pem);
      return path;
    });
    return await work(paths);
  } finally {
    folder.remove();
  }
}

function runTool(
  command: string,
  args: readonly string[],
  input = '',
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'pipe', timeout: 120_000 });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', reject);
    child.on('close', (code) =>
      resolve({ code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }),
    );
    child.stdin.on('error', () => {}); // it ended without reading: its exit code says why
    child.stdin.end(input);
  });
}
