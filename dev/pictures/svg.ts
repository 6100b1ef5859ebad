/** What all generated pictures share: escaping, colours for light and dark pages, widths of text. */

/** Text as the content of an element or the value of an attribute. */
export const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/**
 * Each picture draws its own background: the colour scheme of an image follows the reader's system, and the page around it may
 * have another one. The contrast of each text colour with its background is at least 4.5 (WCAG 2.2, 1.4.3); a test computes it.
 */
export const colours = {
  light: {
    page: '#ffffff',
    ink: '#1f2328',
    soft: '#59636e',
    line: '#8c959f',
    box: '#eef2f6',
    no: '#c01c28',
    yes: '#156b2e',
  },
  dark: {
    page: '#0d1117',
    ink: '#f0f6fc',
    soft: '#a5adb8',
    line: '#6e7681',
    box: '#1c232c',
    no: '#ff8b85',
    yes: '#5fd27c',
  },
} as const;

/** Custom properties `--page`, `--ink` … for both schemes. */
export const colourStyle = (): string => {
  const properties = (scheme: keyof typeof colours): string =>
    Object.entries(colours[scheme])
      .map(([name, value]) => `--${name}:${value}`)
      .join(';');
  return `:root{${properties('light')}}@media (prefers-color-scheme:dark){:root{${properties('dark')}}}`;
};

/** Advances in parts of the font size: those of DejaVu Sans, the widest of the fonts that are asked for. */
const narrow = /[iljtfrI.,:;'|!()[\] -]/;
const wide = /[mwMWQO@%—✗✓…→]/;
const capital = /[A-Z]/;

/** An estimate of the width in pixels. Fonts are the reader's, so it is never exact; the layout leaves a margin. */
export const textWidth = (text: string, fontSize: number, bold = false): number => {
  let width = 0;
  for (const letter of text)
    width += narrow.test(letter) ? 0.36 : wide.test(letter) ? 0.92 : capital.test(letter) ? 0.7 : 0.61;
  return Math.ceil(width * fontSize * (bold ? 1.12 : 1));
};

/** The whole document, with its name and description for screen readers. */
export const document = (picture: {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly description: string;
  readonly style: string;
  readonly body: readonly string[];
}): string => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${picture.width} ${picture.height}" width="${picture.width}" height="${picture.height}" role="img" aria-labelledby="title description">
<title id="title">${escapeXml(picture.title)}</title>
<desc id="description">${escapeXml(picture.description)}</desc>
<style>${picture.style}</style>
${picture.body.join('\n')}
</svg>
`;
