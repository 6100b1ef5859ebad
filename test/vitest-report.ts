/**
 * The reporter of the test command: which tests ran and how long each file took, hooks and imports included, which vitest's
 * JSON reporter leaves out. It writes to the file that the environment variable names.
 */
import { writeFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

const root = resolve(import.meta.dirname, '..');
export const reportVariable = 'COUNTERSIGN_TEST_REPORT';

/** Each file: the status of each of its tests, and whether it failed outside of them (an import, a hook of the file). */
export type Report = Readonly<
  Record<
    string,
    {
      readonly tests: readonly string[];
      readonly seconds: number;
      readonly broken: boolean;
      /** Each failed test with the first line of its error. Of a broken file: its errors. */
      readonly failures: readonly string[];
    }
  >
>;

export default class WriteReport implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const report: Report = Object.fromEntries(modules.map((module) => [relative(root, module.moduleId), seen(module)]));
    const file = process.env[reportVariable];
    if (file !== undefined) writeFileSync(file, JSON.stringify(report));
  }
}

function seen(module: TestModule): Report[string] {
  const cases = [...module.children.allTests()];
  const tests = cases.map((test) => test.result().state);
  const { collectDuration, setupDuration, duration } = module.diagnostic();
  const broken = module.state() === 'failed' && !tests.includes('failed');
  const failures = [
    ...cases.filter((test) => test.result().state === 'failed').map(failureOf),
    ...(broken ? module.errors().map(({ message }) => firstLine(message)) : []),
  ];
  return { tests, seconds: (collectDuration + setupDuration + duration) / 1_000, broken, failures };
}

function failureOf(test: TestCase): string {
  return `${test.fullName}: ${firstLine(test.result().errors?.[0]?.message ?? 'no error')}`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!.slice(0, 300);
}
