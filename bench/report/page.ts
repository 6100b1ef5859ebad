/** The table of comparisons in docs/internals/performance.md, as `--docs` writes it. */
import { comparisonsOf } from './comparisons.ts';
import { comparisonCells, comparisonHeads } from './comparison-table.ts';
import { othersText } from './report.ts';
import type { Results } from '../results.ts';

const begin = '<!-- comparisons: written by npm run bench -- --docs -->';
const end = '<!-- end of comparisons -->';

/** The page with its comparisons replaced by those of this run. */
export function withComparisons(page: string, results: Results): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) throw new Error(`the page has no lines "${begin}" and "${end}"`);
  return `${page.slice(0, from)}${begin}\n${comparisonsText(results)}\n${page.slice(to)}`;
}

function comparisonsText(results: Results): string {
  const { date, commit, machine } = results;
  const { processors, cpu, memoryGibibytes, system, node, kubernetes } = machine;
  const rows = [
    comparisonHeads,
    comparisonHeads.map(() => '---'),
    ...results.phases.flatMap(comparisonsOf).map(comparisonCells),
  ];
  return [
    `${date.slice(0, 10)}, commit ${commit}, ${processors} × ${cpu}, ${memoryGibibytes} GiB, ${system}, Node ${node}, Kubernetes ${kubernetes ?? '–'}.`,
    othersText(results),
    '',
    ...rows.map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ].join('\n');
}
