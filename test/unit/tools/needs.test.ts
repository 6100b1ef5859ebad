import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { toolsNeededBy } from '../../tools/needs.ts';
import { toolNames } from '../../tools/tools.ts';

const root = resolve(import.meta.dirname, '../../..');
const suites = globSync('test/suites/**/*.test.ts', { cwd: root });

test.for([
  ['test/suites/oracle/lint/lint.test.ts', ['zlint', 'pkilint']],
  ['test/suites/control-plane/rbac/rights.test.ts', ['etcd', 'kube-apiserver', 'kubectl']],
  // Through requireKubelet of test/harness/kubernetes/kubelet.ts.
  ['test/suites/node/kubelet/stock.test.ts', ['etcd', 'kube-apiserver', 'kubectl', 'kubelet']],
  // Through requireLocalStack of test/harness/aws/localstack.ts.
  ['test/suites/aws/localstack/custom-resource.test.ts', ['localstack', 'dynamodb-local']],
  // Through the set-up of its folder.
  ['test/suites/aws/contract/ledger.test.ts', ['localstack', 'ministack', 'dynamodb-local']],
  ['test/unit/tools/needs.test.ts', []],
] as const)('%s needs %s', ([file, tools]) => {
  expect(toolsNeededBy([file])).toEqual(tools);
});

test('all suites together need every tool, each named once', () => {
  expect(suites.length).toBeGreaterThan(50);
  expect(toolsNeededBy(suites)).toEqual(toolNames);
});

test('a file that does not exist needs nothing', () => {
  expect(toolsNeededBy(['test/suites/none.test.ts'])).toEqual([]);
});
