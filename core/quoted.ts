/**
 * Values of a request inside messages. Requesters choose them, and the messages end in conditions, Events, logs and
 * terminals: nothing that could forge a line, colour a terminal, reorder the text or fill the object gets through.
 */
const longest = 80;

/** The text itself, with what is not plainly visible written as `\u{…}`, and cut after 80 characters. */
export function printable(text: string): string {
  if (/^[ !-[\]-~]{0,80}$/.test(text)) return text; // what names nearly always are
  // By code points: half of a surrogate pair is itself escaped.
  const characters = Array.from(text.slice(0, longest * 2));
  const shown = characters.slice(0, longest).map(visible).join('');
  return characters.length > longest ? `${shown}…` : shown;
}

export function quoted(text: string): string {
  return `"${printable(text).replaceAll('"', '\\"')}"`;
}

/** A list for people: deduplicated, quoted, at most eight of it. */
export function quotedList(values: readonly string[]): string {
  return values.length === 0 ? 'none' : atMost(values, quoted).join(', ');
}

/** One text per distinct value, at most eight and then how many more: a request may hold ten thousand of them. */
export function atMost(values: readonly string[], text: (value: string) => string): readonly string[] {
  const distinct = [...new Set(values)];
  const shown = distinct.slice(0, 8).map(text);
  return distinct.length > 8 ? [...shown, `… and ${distinct.length - 8} more`] : shown;
}

function visible(character: string): string {
  // Letters, marks, numbers, punctuation, symbols and the plain space; not format characters (bidi overrides), not
  // the other separators (U+2028), not controls, not lone surrogates.
  if (character === '\\') return '\\\\';
  return /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(character)
    ? character
    : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
