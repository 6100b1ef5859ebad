/** The report as a page of Markdown. Details come from AWS and from endpoints, so they are untrusted text. */
import { printableUpTo } from '../core/outcome/printable-text.ts';
import { marks } from './engine.ts';
import type { Report } from './engine.ts';
import type { LeftBehind } from './world/undo.ts';

const words = { passed: 'passed', failed: 'FAILED', notShown: '', skipped: 'skipped' } as const;

export function page(report: Report): string {
  const { name, place, emulator, began, seconds, passed, steps, left, calls, cost } = report;
  const where =
    emulator === undefined ? `account ${place.account}, region ${place.region}` : `the emulator ${emulator}`;
  const rows = steps.map(({ title, outcome, notShown, seconds: took, shows }) => {
    const missing = notShown.length === 0 ? [] : [`not shown here: ${notShown.join('; ')}`];
    return row(title, [words[outcome], ...missing].filter((text) => text !== '').join('; '), `${took} s`, shows);
  });
  const details = steps.map(
    ({ title, findings }) =>
      `## ${title}\n\n${findings.map(({ what, outcome, detail }) => `- ${marks[outcome]} ${cell(what)}${detail === '' ? '' : `: ${cell(detail)}`}\n`).join('')}`,
  );
  return [
    `# Acceptance run ${name}: ${passed ? 'passed' : 'failed'}\n`,
    `On ${where}, begun at ${began}, ${seconds} s. ✓ holds, ✗ fails, · was looked at, ! not shown here.\n`,
    `| step | outcome | took | shows |\n|---|---|--:|---|\n${rows.join('')}`,
    ...details,
    `## Left behind\n\n${leftText(left)}`,
    `## Cost\n\nAbout $${cost.dollars.toFixed(2)}, by counted calls and list prices of us-east-1.\n`,
    `| what | count | dollars |\n|---|--:|--:|\n${cost.lines.map(({ what, count, dollars }) => row(what, String(count), dollars.toFixed(4))).join('')}`,
    `## Calls\n\n${Object.entries(calls)
      .map(([call, count]) => `- ${call}: ${count}\n`)
      .join('')}`,
  ].join('\n');
}

export function leftText(left: readonly LeftBehind[]): string {
  if (left.length === 0) return 'Nothing.\n';
  return left
    .map(({ what, why, command }) => `- ${cell(what)}: ${cell(why)}${command === '' ? '' : `; \`${command}\``}\n`)
    .join('');
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map(cell).join(' | ')} |\n`;
}

function cell(text: string): string {
  return printableUpTo(600, text.replaceAll(/\s+/g, ' ')).replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
