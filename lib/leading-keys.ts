/** Items of a table by what their keys begin with (adapters/dynamodb/table.ts): `uid#…`, `once#address#…`. */
export function onItems(prefixes: readonly string[]): {
  readonly [operator: string]: { readonly [key: string]: string[] };
} {
  return { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': prefixes.map((prefix) => `${prefix}#*`) } };
}
