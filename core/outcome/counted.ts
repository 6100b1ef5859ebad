/** `1 certificate`, `2 certificates`. `noun`: one whose plural ends with s. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
