/** `countersign config test`: requests of a folder, each with the decision that the operator expects. docs/ca/inventory.md */
import { counted } from '../../core/outcome/counted.ts';
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';
import { isObject, objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { addClusterOptions, chooseCluster, readText } from '../cluster/cluster-choice.ts';
import type { ChosenCluster, ClusterFlags } from '../cluster/cluster-choice.ts';
import { explain } from '../output/explanation.ts';
import type { Explanation } from '../output/explanation.ts';
import { formatOutput, table } from '../output/output.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { filesIn } from './folder.ts';

interface Expectation {
  readonly decision: 'permit' | 'refuse' | 'ignore';
  /** For `refuse`: the codes of all violations, in any order. */
  readonly reasons?: readonly string[];
}

interface Result {
  readonly case: string;
  readonly passed: boolean;
  readonly expected: Expectation;
  readonly decision: Expectation['decision'];
  readonly reasons: readonly string[];
  readonly message: string;
}

export function addTest(config: CliCommand, io: Io): void {
  addClusterOptions(config.command('test'))
    .page('ca/inventory.md#config-test')
    .description(
      'decide each request of a folder by the rules of a cluster, and compare with the decision that its file expects.\n' +
        'Exit code 0: all as expected. 1: not all. 3: a file is no case.',
    )
    .argument('<folder>', 'with one case in each .yaml, .yml or .json file, also in folders below it')
    .formats('table', 'json', 'yaml')
    .notes(
      'A case has `request`, a CertificateSigningRequest (spec.request in base64, or as PEM), and `expect` with `decision`: permit, refuse or',
      'ignore; and for refuse, if wanted, `reasons`: the codes of all violations. Approval and attestation are not part of the decision.',
    )
    .examples(
      'countersign config test cases/ --config countersign.yaml --cluster prod',
      'countersign config test cases/ -o json',
    )
    .runs((folder: string, flags: ClusterFlags & { readonly output: string }) => test(folder, flags, io));
}

async function test(folder: string, flags: ClusterFlags & { readonly output: string }, io: Io): Promise<ExitCode> {
  const chosen = await chooseCluster(flags, io);
  const files = await filesIn(folder, /\.(ya?ml|json)$/, '.yaml, .yml or .json file', io);
  const results: Result[] = [];
  for (const file of files) results.push(decide(file, caseOf(await readText(file, io), file), chosen, io));
  const failed = results.filter(({ passed }) => !passed).length;
  const counts = { cluster: chosen.cluster.name, cases: results.length, failed };
  io.out(formatOutput(flags.output, { ...counts, results }, () => text(results, failed)));
  return failed === 0 ? exitCodes.ok : exitCodes.refused;
}

interface Case {
  readonly request: JsonObject;
  readonly expected: Expectation;
}

function caseOf(text: string, file: string): Case {
  const document = readBoundedDocument(text);
  if (!document.ok) throw wrong(file, `it ${document.problem}`);
  const { request, expect, ...others } = objectOf(document.value);
  const unknown = Object.keys(others);
  if (unknown.length > 0) throw wrong(file, `it has the unknown key ${printable(unknown[0] ?? '')}`);
  if (!isObject(request)) throw wrong(file, 'request is missing: the CertificateSigningRequest');
  return { request: withBase64(request), expected: expectationOf(expect, file) };
}

function expectationOf(value: unknown, file: string): Expectation {
  const { decision, reasons, ...others } = objectOf(value);
  if (decision !== 'permit' && decision !== 'refuse' && decision !== 'ignore')
    throw wrong(file, 'expect.decision must be permit, refuse or ignore');
  if (Object.keys(others).length > 0) throw wrong(file, 'expect has other keys than decision and reasons');
  if (reasons === undefined) return { decision };
  const codes = Array.isArray(reasons) ? reasons.filter((code): code is string => typeof code === 'string') : [];
  if (decision !== 'refuse' || !Array.isArray(reasons) || codes.length !== reasons.length || codes.length === 0)
    throw wrong(file, 'expect.reasons is a list of codes, only with decision: refuse');
  return { decision, reasons: codes };
}

/** People write PEM; the API server stores base64 of it. */
function withBase64(request: JsonObject): JsonObject {
  const spec = objectOf(request['spec']);
  const pem = spec['request'];
  const metadata = { name: 'case', uid: 'case', ...objectOf(request['metadata']) };
  if (typeof pem !== 'string' || !pem.startsWith('-----BEGIN')) return { ...request, metadata };
  return { ...request, metadata, spec: { ...spec, request: Buffer.from(pem).toString('base64') } };
}

function decide(file: string, { request, expected }: Case, { cluster }: ChosenCluster, io: Io): Result {
  // What a cluster did with the request before is not the decision of the rules.
  const { status: _, ...pending } = request;
  const decoded = decodeRequestObject(pending);
  if (!decoded.ok) {
    if (decoded.problem.tooLarge === true)
      return resultOf(file, expected, 'refuse', ['RequestTooLarge'], decoded.problem.message);
    throw wrong(file, `request: ${decoded.problem.message}`);
  }
  const explanation = explain(decoded.value, cluster, io.now(), { certificate: '', caIsConfigured: false });
  const reasons = explanation.checks.flatMap(({ violations }) => violations.map(({ code }) => code));
  return resultOf(file, expected, decisionOf(explanation), reasons, explanation.message);
}

function decisionOf({ outcome }: Explanation): Expectation['decision'] {
  switch (outcome) {
    case 'issue':
    case 'wait':
      return 'permit';
    case 'ignore':
      return 'ignore';
    case 'refuse':
      return 'refuse';
    case 'issued':
    case 'foreign':
    case 'failed':
    case 'denied':
      throw new Error('a request without a status is settled');
  }
}

function resultOf(
  file: string,
  expected: Expectation,
  decision: Expectation['decision'],
  codes: readonly string[],
  message: string,
): Result {
  const reasons = decision === 'refuse' ? [...new Set(codes)].toSorted() : [];
  const wanted = expected.reasons === undefined ? reasons : [...new Set(expected.reasons)].toSorted();
  const passed = decision === expected.decision && reasons.join() === wanted.join();
  return { case: file, passed, expected, decision, reasons, message };
}

function wrong(file: string, what: string): CommandFailure {
  return new CommandFailure(
    exitCodes.configuration,
    `${file}: ${what}`,
    'countersign config test --help shows the format',
  );
}

function text(results: readonly Result[], failed: number): string {
  const rows = results.map((result) => {
    const { passed, expected, decision, reasons, message } = result;
    const got = `${decision}${reasons.length === 0 ? '' : ` (${reasons.join(', ')})`}`;
    const wanted = `${expected.decision}${expected.reasons === undefined ? '' : ` (${expected.reasons.join(', ')})`}`;
    return [passed ? '✓' : '✗', printable(result.case), passed ? got : `expected ${wanted}, got ${got}: ${message}`];
  });
  return `${table(rows)}\n${counted(results.length, 'case')}, ${failed} not as expected\n`;
}
