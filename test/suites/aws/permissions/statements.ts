/** The permissions in a template, each by a name of its own, so that one can be left out. */
import type { Template } from '../../../harness/aws/sdk-stacks.ts';

interface Statement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Principal?: string | Readonly<Record<string, unknown>>;
}

/** All that is allowed or denied, each action to each principal by itself. */
export function permissionsOf(template: Template): readonly string[] {
  return edit(template, () => true).permissions;
}

/** The template, saying nothing of these. */
export function withoutPermissions(template: Template, left: readonly string[]): Template {
  return edit(template, (permission) => !left.includes(permission)).template;
}

function edit(
  template: Template,
  keep: (permission: string) => boolean,
): { readonly permissions: readonly string[]; readonly template: Template } {
  const permissions: string[] = [];
  const kept = (permission: string): boolean => {
    permissions.push(permission);
    return keep(permission);
  };
  const resources = Object.entries(template.Resources).flatMap(([id, resource]) => {
    const properties = { ...resource.Properties };
    const name = id.replaceAll(/[0-9A-F]{8}(?![a-z])/g, '');
    // The other half of a function's policy than its role: who may call it.
    if (resource.Type === 'AWS::Lambda::Permission') {
      const { Action: action, Principal: principal } = properties;
      return kept(`${name} ${String(action)} ${String(principal)}`) ? [[id, resource] as const] : [];
    }
    for (const field of ['PolicyDocument', 'KeyPolicy', 'AssumeRolePolicyDocument']) {
      const document = properties[field] as { readonly Statement: readonly Statement[] } | undefined;
      if (document === undefined) continue;
      // Apart, so that one can be left out; together they say the same.
      const statements = document.Statement.flatMap((statement) =>
        partsOf(statement).flatMap(({ part, text }) => (kept(`${name} ${text}`) ? [part] : [])),
      );
      if (statements.length === 0 && field === 'PolicyDocument') return [];
      properties[field] = { ...document, Statement: statements };
    }
    return [[id, { ...resource, Properties: properties }] as const];
  });
  return { permissions, template: { ...template, Resources: Object.fromEntries(resources) } };
}

function partsOf(statement: Statement): { readonly part: Statement; readonly text: string }[] {
  const { Sid: sid = '-', Effect: effect, Action: action, Principal: principal } = statement;
  const what = effect === 'Allow' ? sid : `${sid} ${effect}`;
  return [action].flat().flatMap((each) => {
    if (principal === undefined) return [{ part: { ...statement, Action: each }, text: `${what} ${each}` }];
    const principals = typeof principal === 'string' ? { AWS: principal } : principal;
    return Object.entries(principals).flatMap(([kind, who]) =>
      [who].flat().map((one: unknown) => ({
        part: { ...statement, Action: each, Principal: { [kind]: one } },
        text: `${what} ${each} ${nameOf(one)}`,
      })),
    );
  });
}

function nameOf(principal: unknown): string {
  const text = typeof principal === 'string' ? principal : JSON.stringify(principal);
  return (
    /(SignRole|CaRole|KubeadmRole|AttestRole|:root|(?:role|user)\/[\w-]+|[a-z]+\.amazonaws\.com)/.exec(text)?.[1] ??
    text
  );
}
