/** Who may have what approved, by bindings that an operator takes away and gives back. */
import type { Permits } from './request-api.ts';

export interface Authorizer {
  readonly permits: Permits;
  bind(group: BoundGroup, bound: boolean): void;
}

export const boundGroups = ['system:bootstrappers', 'system:nodes'] as const;
export type BoundGroup = (typeof boundGroups)[number];

export function createAuthorizer(): Authorizer {
  const bound = new Set<string>(boundGroups);
  return {
    permits({ groups, subresource }) {
      const group = subresource.includes('self') ? 'system:nodes' : 'system:bootstrappers';
      return bound.has(group) && groups.includes(group);
    },
    bind: (group, is) => void (is ? bound.add(group) : bound.delete(group)),
  };
}
