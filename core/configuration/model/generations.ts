import type { CaConfiguration } from './cluster.ts';

/**
 * The names of this CA, of those it replaces and of those that replace it: the oldest first, whichever of them is asked about. They are
 * trusted together. Ends for CAs that replace each other too, which is an error of the file.
 */
export function generationsOf(
  ca: string,
  cas: ReadonlyMap<string, Pick<CaConfiguration, 'name' | 'replaces'>>,
): readonly string[] {
  const generations = [ca];
  const isNew = (name: string | undefined): name is string => name !== undefined && !generations.includes(name);
  for (let old = cas.get(ca)?.replaces; isNew(old); old = cas.get(old)?.replaces) generations.unshift(old);
  const successors = new Map([...cas.values()].map(({ name, replaces }) => [replaces, name]));
  for (let next = successors.get(ca); isNew(next); next = successors.get(next)) generations.push(next);
  return generations;
}
