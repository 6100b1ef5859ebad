/**
 * HTML from templates. Every value is escaped, in texts and in quoted attributes; only Markup, which a template made, is not. Names in
 * the report are chosen by requesters: they must not become tags, end an attribute, or reorder the text around them.
 */
import { escapeHidden } from '../../../core/outcome/printable-text.ts';

export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | Markup | readonly Markup[] | undefined;

export function markup(literals: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return new Markup(literals.reduce((before, literal, index) => before + textOf(values[index - 1]) + literal));
}

function textOf(value: Value): string {
  if (value === undefined) return '';
  if (value instanceof Markup) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return escaped(String(value));
}

/** Longer values are cut: one of them must not fill the page. Fingerprints, ARNs and messages are shorter. */
const longest = 600;

const references: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '\n': '\\u{a}',
};

function escaped(text: string): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return escapeHidden(cut).replaceAll(/[&<>"'\n]/g, (character) => references[character] ?? '');
}
