/** The reference of docs/constructs.md: what lib/constructs.ts exports, with the comments that the sources have. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from 'oxc-parser';
import type { Class, Comment, Declaration, Node, Program } from 'oxc-parser';

interface Source {
  readonly text: string;
  readonly program: Program;
  readonly comments: readonly Comment[];
}

/** A comment: its text, its default, its other tags. */
interface Doc {
  readonly text: string;
  readonly initial?: string;
  readonly parameters: readonly string[];
  readonly isInternal: boolean;
}

/** `entry`: the file whose exports are described, in their order. */
export function apiReference(entry: string): string {
  const { program } = parse(entry);
  return program.body
    .flatMap((node) => {
      if (node.type !== 'ExportNamedDeclaration' || node.source === null) return [];
      const source = parse(join(dirname(entry), node.source.value));
      return node.specifiers.map(({ local }) => section(source, 'name' in local ? local.name : local.value));
    })
    .join('\n');
}

function parse(file: string): Source {
  const text = readFileSync(file, 'utf8');
  const { program, comments, errors } = parseSync(file, text);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  return { text, program, comments };
}

function section(source: Source, name: string): string {
  for (const node of source.program.body) {
    if (node.type !== 'ExportNamedDeclaration' || node.declaration === null) continue;
    const { declaration } = node;
    if (!('id' in declaration) || declaration.id === null || !('name' in declaration.id)) continue;
    if (declaration.id.name !== name) continue;
    return `### ${name}\n\n${docOf(source, node).text}\n\n${body(source, declaration, docOf(source, node))}`;
  }
  throw new Error(`${name} is not declared where it is exported`);
}

function body(source: Source, declaration: Declaration, { parameters }: Doc): string {
  if (declaration.type === 'TSTypeAliasDeclaration')
    return `\`\`\`ts\n${oneLine(source.text.slice(declaration.start, declaration.end)).replace('= | ', '= ')}\n\`\`\`\n`;
  if (declaration.type === 'FunctionDeclaration') {
    const end = declaration.body?.start ?? declaration.end;
    return `\`\`\`ts\n${source.text.slice(declaration.start, end).trim()}\n\`\`\`\n\n${list(parameters)}`;
  }
  if (declaration.type === 'TSInterfaceDeclaration') {
    const rows = declaration.body.body.flatMap((member) => {
      if (member.type !== 'TSPropertySignature') return [];
      const { text, initial = '', isInternal } = docOf(source, member);
      const required = initial === '' ? 'required' : initial;
      return isInternal ? [] : [row([code(nameOf(source, member.key)), typeOf(source, member), text, required])];
    });
    return table(['property', 'type', 'meaning', 'default'], rows);
  }
  if (declaration.type === 'ClassDeclaration') return classBody(source, declaration);
  throw new Error(`${declaration.type} is not described`);
}

function classBody(source: Source, declaration: Class): string {
  const attributes: string[] = [];
  const methods: string[] = [];
  let constructed = '';
  const className = declaration.id?.name ?? '';
  for (const member of declaration.body.body) {
    if (!('key' in member) || member.key.type !== 'Identifier') continue;
    const { name } = member.key;
    const { text, initial, parameters, isInternal } = docOf(source, member);
    if (isInternal) continue;
    if (member.type === 'PropertyDefinition') attributes.push(row([code(name), typeOf(source, member), text]));
    if (member.type !== 'MethodDefinition') continue;
    const { params, returnType } = member.value;
    const given = params.map((parameter) => parameterText(source, parameter)).join(', ');
    if (member.kind === 'constructor') {
      constructed = `\`new ${className}(${given})\`\n`;
      continue;
    }
    const call = `${member.static ? `${className}.` : ''}${name}(${given})`;
    const returned = returnType === null || returnType === undefined ? '' : annotation(source, returnType);
    const more = [...parameters, ...(initial === undefined ? [] : [`Default: ${initial}`])].map((each) => ` ${each}.`);
    methods.push(row([code(call), code(returned), `${text}${more.join('')}`]));
  }
  const parts = [constructed, table(['attribute', 'type', 'meaning'], attributes)];
  return [...parts, ...(methods.length === 0 ? [] : [table(['method', 'returns', 'meaning'], methods)])].join('\n');
}

/** A parameter that is taken apart is the properties. */
function parameterText(source: Source, parameter: Node): string {
  if (parameter.type !== 'ObjectPattern') return source.text.slice(parameter.start, parameter.end);
  const { typeAnnotation } = parameter;
  return `props${typeAnnotation === null || typeAnnotation === undefined ? '' : `: ${annotation(source, typeAnnotation)}`}`;
}

function typeOf(source: Source, node: { readonly typeAnnotation?: Node | null }): string {
  return node.typeAnnotation === null || node.typeAnnotation === undefined
    ? ''
    : code(annotation(source, node.typeAnnotation));
}

/** Without the colon. */
function annotation({ text }: Source, { start, end }: Node): string {
  return text.slice(start, end).replace(/^:\s*/, '').replaceAll(/\s+/g, ' ').replace(/^\| /, '');
}

function nameOf({ text }: Source, { start, end }: Node): string {
  return text.slice(start, end);
}

/** Of the comment that ends where the node begins. */
function docOf({ text, comments }: Source, { start }: Node): Doc {
  const comment = comments.findLast(({ type, end }) => type === 'Block' && end < start && isBlank(text, end, start));
  const lines = (comment?.value ?? '').split('\n').map((line) => line.replace(/^\s*\*+ ?/, '').trimEnd());
  const [plain = '', ...tags] = lines.join('\n').trim().split(/^@/m);
  const initial = tags.find((tag) => tag.startsWith('default'))?.replace(/^default - /, '');
  return {
    text: plain
      .trim()
      .split(/\n{2,}/)
      .map(oneLine)
      .join(' '),
    ...(initial === undefined ? {} : { initial: oneLine(initial) }),
    parameters: tags.flatMap((tag) => {
      const [, name = '', meaning = ''] = /^param (\w+) (.*)$/s.exec(tag) ?? [];
      return name === '' ? [] : [`\`${name}\`: ${oneLine(meaning)}`];
    }),
    isInternal: tags.some((tag) => tag.startsWith('internal')),
  };
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ');
}

function isBlank(text: string, start: number, end: number): boolean {
  return text.slice(start, end).trim() === '';
}

function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

function list(items: readonly string[]): string {
  return items.map((item) => `- ${item}\n`).join('');
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function table(heads: readonly string[], rows: readonly string[]): string {
  return `${row(heads)}\n|${heads.map(() => '---|').join('')}\n${rows.join('\n')}\n`;
}
