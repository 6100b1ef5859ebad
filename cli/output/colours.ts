/** Colours, for a terminal only: lines that begin with a mark. Text of a command never holds control characters itself (main.ts). */

/** The SGR parameters of ECMA-48 by the mark with which a line begins: red, yellow, green, faint. */
const colours: Readonly<Record<string, number>> = { '✗': 31, '→': 31, '…': 33, '!': 33, '✓': 32, '–': 2 };

/** A ✗, its → and a – colour their line, the other marks only themselves. */
export function coloured(text: string): string {
  return text.replaceAll(
    /^( *)([✗→–])( .*)$|^([✓…!])(?= {2})/gm,
    (_, indent = '', whole = '', rest = '', mark = '') => {
      const colour = colours[`${whole}${mark}`];
      return colour === undefined ? _ : `${indent}\u001b[${colour}m${whole}${mark}${rest}\u001b[0m`;
    },
  );
}

/** `NO_COLOR` of any length but zero switches colours off (no-color.org). */
export function wantsColours(isTerminal: boolean, environment: Readonly<Record<string, string | undefined>>): boolean {
  return isTerminal && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb';
}
