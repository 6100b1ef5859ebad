/**
 * Makes values of a request safe inside messages. Requesters choose the values, and the messages appear in conditions, Events,
 * logs and terminals. A value must not forge a line, colour a terminal, reorder the text or fill the object.
 */
const maxCharacters = 80;
/**
 * Everything but visible letters, marks, numbers, punctuation, symbols and the space: controls (C0, C1), format characters (bidi
 * overrides, zero-width joiners), other separators (U+2028, no-break space), lone surrogates, and letters and marks that are
 * drawn as nothing (U+3164, variation selectors).
 */
const hidden = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|\p{Default_Ignorable_Code_Point}/u;
const hiddenExceptLineBreak = new RegExp(`(?!\\n)(?:${hidden.source})`, 'gu');

/**
 * The last step before a terminal, a log or a file: escapes all hidden characters but line breaks, by default as `\u{…}`.
 * The values inside the text have passed `printable` already.
 */
export function escapeHidden(text: string, escape: (character: string) => string = codePointEscape): string {
  return /^[\n -~]*$/.test(text) ? text : text.replace(hiddenExceptLineBreak, escape);
}

/** One line of a log, without line breaks. Cut after 2 000 characters. */
export function oneLine(text: string): string {
  return escapeHidden(text.length > 2_000 ? `${text.slice(0, 2_000)}…` : text).replaceAll('\n', '\\u{a}');
}

/** The text with hidden characters written as `\u{…}`, cut after 80 characters. */
export function printable(text: string): string {
  return printableUpTo(maxCharacters, text);
}

/** `printable` with another limit. */
export function printableUpTo(length: number, text: string): string {
  if (text.length <= length && /^[ !-[\]-~]*$/.test(text)) return text; // fast path: most names
  // Split into code points; a lone surrogate is escaped.
  const characters = Array.from(text.slice(0, length * 2));
  const shown = characters.slice(0, length).map(visible).join('');
  return characters.length > length ? `${shown}…` : shown;
}

export function quoted(text: string): string {
  return `"${printable(text).replaceAll('"', '\\"')}"`;
}

/** Distinct values, quoted, at most eight; `none` for an empty list. */
export function quotedList(values: readonly string[]): string {
  return values.length === 0 ? 'none' : atMost(values, quoted).join(', ');
}

/** The texts of at most eight distinct values, then `… and n more`: a request may hold ten thousand values. */
export function atMost(values: readonly string[], text: (value: string) => string): readonly string[] {
  const distinct = [...new Set(values)];
  const shown = distinct.slice(0, 8).map(text);
  return distinct.length > 8 ? [...shown, `… and ${distinct.length - 8} more`] : shown;
}

function visible(character: string): string {
  if (character === '\\') return '\\\\';
  return hidden.test(character) ? codePointEscape(character) : character;
}

function codePointEscape(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
