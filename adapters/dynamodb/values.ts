/** Plain values (text, whole numbers, booleans, bytes, lists, objects) as DynamoDB writes them, and back. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';

export type Item = Record<string, AttributeValue>;

/** Leaves out fields that are undefined. */
export function itemFrom(record: object): Item {
  const defined = Object.entries(record).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined.map(([name, value]) => [name, attributeFrom(value)]));
}

export function attributeFrom(value: unknown): AttributeValue {
  if (typeof value === 'string') return { S: value };
  if (typeof value === 'number') return { N: String(value) };
  if (typeof value === 'boolean') return { BOOL: value };
  if (value instanceof Uint8Array) return { B: value };
  if (Array.isArray(value)) return { L: value.map(attributeFrom) };
  if (typeof value === 'object' && value !== null) return { M: itemFrom(value) };
  throw new TypeError(`an item cannot hold a value of type ${typeof value}`);
}

export function plainFrom(item: Item): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, valueFrom(value)]));
}

function valueFrom(attribute: AttributeValue): unknown {
  if (attribute.S !== undefined) return attribute.S;
  if (attribute.N !== undefined) return Number(attribute.N);
  if (attribute.BOOL !== undefined) return attribute.BOOL;
  if (attribute.B !== undefined) return attribute.B;
  if (attribute.L !== undefined) return attribute.L.map(valueFrom);
  if (attribute.M !== undefined) return plainFrom(attribute.M);
  throw new TypeError('an attribute of the table has a type that this program does not write');
}
