/** The explanation of a request as text: what fails first, then what is not decided; the rest in one line. */
import { atMost, printable } from '../../core/outcome/printable-text.ts';
import type { Check, Explanation } from './explanation.ts';
import { table } from './output.ts';

const marks: Readonly<Record<Check['result'], string>> = { fail: '✗', wait: '…', pass: '✓', none: '–' };
const order: readonly Check['result'][] = ['fail', 'wait', 'pass', 'none'];

const outcomes: Readonly<Record<Explanation['outcome'], string>> = {
  issue: 'Yes',
  wait: 'Not yet',
  refuse: 'No',
  issued: 'Already issued',
  foreign: 'Issued by another CA',
  failed: 'Failed before',
  denied: 'Denied',
  ignore: 'Not ours',
};

export interface ExplanationView {
  /** The cluster, and where its rules come from. */
  readonly rules: string;
  /** Requested extensions that the certificate would not carry, with their names. */
  readonly extensions: readonly string[];
  /** Every check in a line of its own. */
  readonly all: boolean;
}

export function explanationText(explanation: Explanation, { rules, extensions, all }: ExplanationView): string {
  const { name, signerName, checks, outcome, reason, message, validity } = explanation;
  const head = `${printable(name)} for ${signerName === '' ? 'no signer' : printable(signerName)}, ${rules}\n\n`;
  const sorted = order.flatMap((result) => checks.filter((check) => check.result === result));
  const listed = all ? sorted : sorted.filter(({ result }) => result === 'fail' || result === 'wait');
  const rows = table(listed.map(({ check, result, seen }) => [marks[result], check, seen])).split('\n');
  const body = listed.map(({ violations }, index) =>
    [rows[index], ...violations.map(({ code, message: wrong }) => `   → ${wrong} [${code}]`), ''].join('\n'),
  );
  const dropped =
    extensions.length === 0
      ? ''
      : `\nRequested extensions that the certificate would not carry: ${atMost(extensions, printable).join(', ')}\n`;
  const span = validity === undefined ? '' : `, valid from ${validity.notBefore} to ${validity.notAfter}`;
  const verdict = `${outcomes[outcome]}: ${reason === undefined ? '' : `${reason}: `}${message}${span}\n`;
  return `${head}${body.join('')}${all ? '' : folded(checks)}${dropped}\n${verdict}`;
}

function folded(checks: readonly Check[]): string {
  const count = (wanted: Check['result']) => checks.filter(({ result }) => result === wanted).length;
  const [holds, none] = [count('pass'), count('none')];
  const parts = [
    ...(holds === 0 ? [] : [`${holds} ${holds === 1 ? 'check holds' : 'checks hold'}`]),
    ...(none === 0 ? [] : [`${none} ${none === 1 ? 'does' : 'do'} not apply`]),
  ];
  return parts.length === 0 ? '' : `${marks[holds === 0 ? 'none' : 'pass']}  ${parts.join(', ')} (-v shows all)\n`;
}
