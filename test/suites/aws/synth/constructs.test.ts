/** docs/constructs.md: a project of a user that imports countersign/lib, by Node and by the compiler, and the examples. */
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { inTables, permissionsNamed } from '../permissions/names.ts';
import { alone, root, skipped, type Ran } from './offline.ts';

interface Template {
  readonly Resources: Readonly<Record<string, { readonly Type: string; readonly Properties: Record<string, unknown> }>>;
}

const page = readFileSync(join(root, 'docs/constructs.md'), 'utf8');
const node = process.execPath;

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder('constructs');
});
afterAll(() => folder.remove());

/** As the CDK command line starts it. */
function app(file: string, outdir: string, cwd: string): Ran {
  return alone([node, file], { CDK_OUTDIR: outdir }, cwd);
}

function templates(outdir: string): ReadonlyMap<string, Template> {
  const files = readdirSync(outdir).filter((name) => name.endsWith('.template.json'));
  return new Map(
    files.map((name) => [
      name.replace('.template.json', ''),
      JSON.parse(readFileSync(join(outdir, name), 'utf8')) as Template,
    ]),
  );
}

function ofType(of: Template | undefined, type: string): Record<string, unknown>[] {
  const found = Object.values(of?.Resources ?? {}).filter(({ Type }) => Type === type);
  return found.map(({ Properties }) => Properties);
}

/** A code block of the page that is a file. */
function block(kind: string): string {
  const found = new RegExp(`^ *\`\`\`${kind}\n(.*?)^ *\`\`\`$`, 'ms').exec(page)?.[1];
  if (found === undefined) throw new Error(`the page has no ${kind}`);
  return found;
}

describe.skipIf(skipped)('a project of a user', () => {
  let project: string;
  beforeAll(() => {
    project = join(folder.path, 'project');
    mkdirSync(join(project, 'node_modules/@types'), { recursive: true });
    for (const name of ['package.json', 'tsconfig.json', 'cdk.json'])
      writeFileSync(join(project, name), block(`json ${name}`));
    writeFileSync(join(project, 'app.ts'), block('ts'));
    // As npm links a workspace and puts what both need beside it.
    symlinkSync(root, join(project, 'node_modules/countersign'));
    for (const name of ['aws-cdk-lib', 'constructs', '@types/node'])
      symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name));
  });

  test('the app of the page runs by Node alone', () => {
    const outdir = join(folder.path, 'page');
    expect(app('app.ts', outdir, project)).toEqual({ code: 0, out: '', err: '' });
    const made = templates(outdir);
    expect([...made.keys()].sort()).toEqual(['countersign-prod', 'countersign-prod-state']);
    expect(ofType(made.get('countersign-prod-state'), 'AWS::KMS::Key')).toHaveLength(1);
    expect(ofType(made.get('countersign-prod'), 'AWS::Lambda::Function')).toHaveLength(2);
  });

  test('the compiler accepts it with the options of the page, and refuses a wrong property', () => {
    // The compiler reports @ts-expect-error on a line without an error.
    const wrong = block('ts').replace(
      "name: 'prod'",
      "// @ts-expect-error The property is called name.\n    nam: 'prod'",
    );
    writeFileSync(join(project, 'wrong.ts'), wrong);
    const tsc = join(root, 'node_modules/.bin/tsc');
    expect(alone([node, tsc, '-p', project], {}, project)).toEqual({ code: 0, out: '', err: '' });
  });

  test('the versions of the page are those of the checkout', () => {
    type Manifest = Readonly<Record<'dependencies' | 'devDependencies', Readonly<Record<string, string>>>>;
    const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
    const { dependencies, devDependencies } = JSON.parse(block('json package.json')) as Manifest;
    expect(own.devDependencies).toMatchObject({ ...dependencies, ...devDependencies });
  });
});

describe.skipIf(skipped)('the examples', () => {
  const examples = new Map<string, ReadonlyMap<string, Template>>();
  const made = (name: string): ReadonlyMap<string, Template> => {
    const known = examples.get(name);
    if (known !== undefined) return known;
    const outdir = join(folder.path, name);
    expect(app(`examples/cdk/${name}.ts`, outdir, root)).toEqual({ code: 0, out: '', err: '' });
    const stacks = templates(outdir);
    examples.set(name, stacks);
    return stacks;
  };

  test('one cluster', () => {
    const stacks = made('one-cluster');
    expect([...stacks.keys()].sort()).toEqual(['countersign-prod', 'countersign-prod-state']);
    const service = stacks.get('countersign-prod');
    const filters = JSON.stringify(ofType(service, 'AWS::Logs::MetricFilter'));
    for (const name of ['Issued', 'Refused']) expect(filters).toContain(`"MetricName":"${name}"`);
    expect(ofType(service, 'AWS::CloudWatch::Dashboard')).toHaveLength(1);
  });

  test('a DNS name of the operator, with its record', () => {
    const service = made('own-domain').get('countersign-prod');
    const [record, ...others] = ofType(service, 'AWS::Route53::RecordSet');
    expect(others).toEqual([]);
    const [domain] = Object.entries(service?.Resources ?? {}).find(([, of]) => of.Type.endsWith('::DomainName')) ?? [];
    expect(record).toMatchObject({
      Name: 'sign.example.com.',
      AliasTarget: { DNSName: { 'Fn::GetAtt': [domain, 'RegionalDomainName'] } },
    });
  });

  test('two accounts: each role names the other', () => {
    const ca = made('ca-account').get('countersign-prod');
    const cluster = made('cluster-account').get('prod-watch-relay');
    const callers = ofType(ca, 'AWS::IAM::Role').filter(({ RoleName }) => RoleName !== undefined);
    const relays = ofType(cluster, 'AWS::IAM::Role');
    expect([callers.length, relays.length]).toEqual([1, 1]);
    const [[caller], [relay]] = [callers, relays];
    expect(JSON.stringify(caller?.['AssumeRolePolicyDocument'])).toContain(
      `"AWS":"arn:aws:iam::444455556666:role/${String(relay?.['RoleName'])}"`,
    );
    expect(JSON.stringify(ofType(cluster, 'AWS::IAM::Policy'))).toContain(
      `:iam::999900001111:role/${String(caller?.['RoleName'])}"`,
    );
  });

  /** Statements of what the examples make beside the constructs. */
  const ofExamples: Readonly<Record<string, RegExp>> = {
    'a role of the example, which its own account may assume': /^Operators - sts:AssumeRole :root$/,
    'the rights of the operator policy, which test/unit/lib/constructs.test.ts compares with it':
      /^OperatorsDefaultPolicy - (dynamodb|cloudformation|logs):\w+$/,
    'to invoke the ca function, as aws/contract/command-line.test.ts does on MiniStack':
      /^OperatorsDefaultPolicy - lambda:InvokeFunction$/,
    'CDK’s own for a topic with enforceSSL': /^TopicPolicy AllowPublishThroughSSLOnly Deny sns:Publish \*$/,
    'the role of a relay, whose other side is the caller role of the other account':
      /^Relay(DefaultPolicy)? - sts:(AssumeRole|AssumeRoleWithWebIdentity)\b/,
  };

  test('has no statement but those that the tables of aws/permissions know, and its own', () => {
    const files = readdirSync(join(root, 'examples/cdk')).filter((name) => name.endsWith('.ts'));
    const used = new Set<string>();
    const unknown = files.flatMap((file) => {
      const name = file.replace('.ts', '');
      return [...made(name)].flatMap(([stack, template]) =>
        permissionsNamed(template, { name: 'prod', cas: ['client', 'serving', 'ca'] }).flatMap((permission) => {
          if (inTables(permission)) return [];
          const [why] = Object.entries(ofExamples).find(([, pattern]) => pattern.test(permission)) ?? [];
          if (why !== undefined) used.add(why);
          return why === undefined ? [`${name}, ${stack}: ${permission}`] : [];
        }),
      );
    });
    expect(unknown).toEqual([]);
    expect([...used].toSorted()).toEqual(Object.keys(ofExamples).toSorted());
  });
});
