/** The page of `countersign report` about the cluster of the hijack scenario: what an operator sees after the attack. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { main as countersign } from '../../../cli/main.ts';
import type { Report } from '../../../cli/report/model/shape.ts';
import { processIo } from '../../../cli/world.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';
import { playHijack } from './hijack.ts';

export const reportScenario: Scenario = {
  name: 'report',
  summary: 'one page shows an operator what the attack of hijack left: the conflict, the refusals, the nodes',
  proven: 'the page names the conflict and both nodes, and has no evidence',
  onRealCluster: false,
  run,
};

const silent = { line: () => {}, heading: () => {}, step: () => {}, check: () => {} };

async function run(world: DemoWorld): Promise<void> {
  const { terminal } = world;
  const folder = mkdtempSync(join(tmpdir(), 'countersign-demo-report-'));
  try {
    terminal.heading('The attack');
    await playHijack({ ...world, terminal: silent }, folder);
    terminal.step('hijack', 'played without its output: npm run demo -- hijack shows it');
    terminal.heading('The report');
    const data = join(folder, 'demo');
    const report = JSON.parse(await command(world, data, 'json')) as Report;
    for (const { level, text } of report.attention) terminal.step(level, text);
    const page = await command(world, data, 'html');
    const { conflicts, fleet, requests } = report;
    const isHeld = fleet.filter(({ standing }) => standing === 'valid').length === 2;
    check(
      world,
      conflicts.some(({ code }) => code === 'TofuNodeTaken') && page.includes('TofuNodeTaken'),
      'the conflict',
    );
    check(
      world,
      requests.some(({ reason }) => reason === 'AttestationInvalid'),
      'the copied evidence that was refused',
    );
    check(world, isHeld, 'both nodes, each with its own machine and certificate');
    check(world, !/X-Amz|k8s-aws-v1|PRIVATE KEY/.test(page), 'no evidence, no token and no key');
    // In a folder of its own, which stays: a fixed name in the folder of all users could be a link of another one.
    const file = join(mkdtempSync(join(tmpdir(), 'countersign-demo-page-')), 'report.html');
    writeFileSync(file, page);
    terminal.step('open', file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function check({ terminal }: DemoWorld, holds: boolean, what: string): void {
  terminal.check(holds, what);
  if (!holds) throw new DemoFailure(`the page does not have what it should: ${what}`);
}

async function command({ terminal }: DemoWorld, data: string, output: string): Promise<string> {
  const printed = { out: '', err: '' };
  terminal.step('operator', `countersign report --data ./data/demo -o ${output}`);
  const io = {
    ...processIo(),
    out: (text: string) => void (printed.out += text),
    err: (text: string) => void (printed.err += text),
  };
  const code = await countersign(['report', '--data', data, '-o', output], io);
  if (code !== 0) throw new DemoFailure(`the command failed (${code}): ${printed.err}`);
  return printed.out;
}
