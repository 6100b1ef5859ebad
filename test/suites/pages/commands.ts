/**
 * The commands of a page, executed as they stand there. A step is a fence that follows `<!-- run: name -->`, so the page can be
 * rewritten around it. Each fence of a page with commands must be a step, and each step must be executed in the order of the page,
 * or the suite gives the reason why it is not.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { startProcess } from '../../harness/processes/processes.ts';
import type { RunningProcess } from '../../harness/processes/processes.ts';
import { toolPath } from '../../tools/tools.ts';

export const root = resolve(import.meta.dirname, '../../..');

interface Step {
  readonly name: string;
  readonly language: string;
  readonly text: string;
}

export function stepsOf(markdown: string): readonly Step[] {
  const fences = /^( *)<!-- run: ([\w-]+) -->\n\n\1```(\w+)\n([\s\S]*?)\n\1```$/gm;
  return [...markdown.matchAll(fences)].map(([, indent = '', name = '', language = '', text = '']) => ({
    name,
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}

export function stepText(path: string, name: string): string {
  const step = stepsOf(readPage(path)).find((each) => each.name === name);
  if (step === undefined) throw new Error(`${path} has no step ${name}`);
  return step.text;
}

/** The first lines of the fences with commands that are not steps. */
export function unmarkedCommands(markdown: string): readonly string[] {
  const marked = new Set(stepsOf(markdown).map(({ text }) => firstLine(text)));
  const all = [...markdown.matchAll(/^ *```(?:sh|bash)\n([\s\S]*?)\n *```$/gm)].map(([, text = '']) => firstLine(text));
  return all.filter((line) => !marked.has(line));
}

const firstLine = (text: string): string => text.split('\n')[0]!.trim();

export function readPage(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export interface OperatorOptions {
  /** Where the operator stands: it gets links to everything in the checkout, and its own files stay in it. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Runs the script of a step. Default: bash. */
  readonly wrap?: (script: string) => readonly [string, ...string[]];
  /** What is on PATH beside countersign. Default: all. */
  readonly programs?: readonly Program[];
}

const allPrograms = ['kubectl', 'helm', 'kubeadm', 'aws'] as const;
type Program = (typeof allPrograms)[number];

export interface Operator {
  /** Standard output; a failed command is an error that shows what it printed. */
  execute(script: string, environment?: Readonly<Record<string, string>>): Promise<string>;
  /** In a terminal of its own: one command, which runs until it is stopped. */
  start(name: string, script: string): RunningProcess;
}

/** As on an operator's machine. */
export async function createOperator({
  folder,
  environment,
  wrap = plain,
  programs = allPrograms,
}: OperatorOptions): Promise<Operator> {
  for (const name of readdirSync(root))
    if (name !== 'countersign.yaml' && name !== 'cdk.out') symlinkSync(join(root, name), join(folder, name));
  const bin = join(folder, '.bin');
  mkdirSync(bin);
  const program = (name: string, command: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\nexec ${command} "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  };
  for (const name of programs)
    program(name, name === 'aws' ? `${await toolPath('aws-cli')} -m awscli` : await toolPath(name));
  program('countersign', `${process.execPath} ${join(root, 'cli/countersign.ts')}`);
  const path = [bin, dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter);
  const variables = { PATH: path, HOME: folder, TMPDIR: folder, ...environment };
  return {
    start(name, script) {
      const [command, ...args] = wrap(`cd ${folder}\nexec ${script}`);
      return startProcess({ name, command, args, logPath: join(folder, `${name}.log`), env: variables });
    },
    async execute(script, more = {}) {
      const [command, ...args] = wrap(script);
      try {
        const { stdout } = await promisify(execFile)(command, args, {
          cwd: folder,
          timeout: 400_000,
          maxBuffer: 64 * 1024 * 1024,
          env: { ...variables, ...more },
        });
        return stdout;
      } catch (error) {
        const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
        const printed = `${stdout}\n${stderr}`.trim().split('\n').slice(-40).join('\n');
        throw new Error(`${script}\nprinted:\n${printed}`, { cause: error });
      }
    },
  };
}

/** The environment in which `kubectl edit` makes these changes: YAML, merged into the ClusterConfiguration. `folder`: keeps them. */
export function editing(folder: string, changes: string): Readonly<Record<string, string>> {
  const file = join(folder, 'changes.yaml');
  writeFileSync(file, changes);
  return { KUBE_EDITOR: `${process.execPath} ${join(import.meta.dirname, 'editor.ts')} ${file}` };
}

const plain = (script: string): readonly [string, ...string[]] => ['bash', '--norc', '-euo', 'pipefail', '-c', script];

export interface Reader {
  /** Executes the step, changed by `change` where the emulator needs it. */
  run(
    name: string,
    change?: Readonly<Record<string, string>>,
    environment?: Readonly<Record<string, string>>,
  ): Promise<string>;
  /** Starts the step in a terminal of its own, changed likewise. */
  start(name: string, change?: Readonly<Record<string, string>>): RunningProcess;
  /** The text of a step that is no command. */
  text(name: string): string;
  /** Steps that were neither executed nor excused. */
  left(): readonly string[];
}

/** `cannot`: steps that this suite does not execute, each with its reason. */
export function readPageAloud(path: string, operator: Operator, cannot: Readonly<Record<string, string>>): Reader {
  const steps = stepsOf(readPage(path));
  const unknown = Object.keys(cannot).filter((name) => !steps.some((step) => step.name === name));
  if (unknown.length > 0) throw new Error(`${path} has no step ${unknown.join(', ')}`);
  let next = 0;
  const advance = (name: string): Step => {
    while (steps[next] !== undefined && Object.hasOwn(cannot, steps[next]!.name)) next += 1;
    const step = steps[next];
    if (step?.name !== name) throw new Error(`${path}: the next step is ${step?.name ?? 'none'}, not ${name}`);
    next += 1;
    return step;
  };
  const changed = (name: string, change: Readonly<Record<string, string>>): string => {
    let { text } = advance(name);
    for (const [from, to] of Object.entries(change)) {
      if (!text.includes(from)) throw new Error(`${path}, ${name}: there is no ${from}`);
      text = text.replaceAll(from, to);
    }
    return text;
  };
  return {
    run: (name, change = {}, environment) => operator.execute(changed(name, change), environment),
    start: (name, change = {}) => operator.start(name, changed(name, change)),
    text: (name) => advance(name).text,
    left: () => steps.slice(next).flatMap((step) => (Object.hasOwn(cannot, step.name) ? [] : [step.name])),
  };
}
